//! Expressions.

use halite_value::{Dict, Value};

use super::{Frame, Interp, Result};
use crate::jinja::{
    ast::{CallArgs, Cmp, Expr, Kind},
    call::{Args, Bound, Signature},
    error::{Class, Error, Subject, type_error},
    filters::{self, FilterRef},
    methods,
    objects::*,
    ops::push_int,
    resolve::Names,
    tests::TestRef,
};

/// Returns what needs no work, a constant or a variable of the running function, without a copy.
pub(super) fn at_hand<'f>(expr: &'f Expr, frame: &'f Frame) -> Option<&'f Value> {
    match &expr.kind {
        Kind::Const(value) => Some(value),
        Kind::Name(_, var) => frame.plain(*var),
        _ => None,
    }
}

impl Interp<'_> {
    pub(crate) fn eval(&mut self, expr: &Expr, frame: &mut Frame) -> Result<Value> {
        self.step()?;
        match &expr.kind {
            Kind::Const(value) => Ok(value.clone()),
            Kind::Name(name, var) => Ok(match frame.get(*var) {
                Some(value) => value,
                None => Undefined::value(self.strict(), Missing::Name(name.clone())),
            }),
            Kind::Attr(object, name) => {
                let object = self.eval_inner(object, frame)?;
                self.attribute(&object, name)
            }
            _ => self.deeper(|interp| interp.eval_large(expr, frame)),
        }
    }

    pub(super) fn eval_inner(&mut self, expr: &Expr, frame: &mut Frame) -> Result<Value> {
        match &expr.kind {
            Kind::Attr(..) => self.deeper(|interp| interp.eval(expr, frame)),
            _ => self.eval(expr, frame),
        }
    }

    pub(super) fn eval_large(&mut self, expr: &Expr, frame: &mut Frame) -> Result<Value> {
        match &expr.kind {
            Kind::Filter(_) => self.eval_filter(expr, frame, None),
            Kind::Call(callee, args) => self.call_expr(callee, args, None, frame),
            Kind::Item(pair) => {
                if let (Some(object), Some(key)) =
                    (at_hand(&pair.0, frame), at_hand(&pair.1, frame))
                {
                    return self.item(object, key);
                }
                let object = self.eval(&pair.0, frame)?;
                if let Kind::Slice(parts) = &pair.1.kind {
                    let parts = self.slice_parts(parts, frame)?;
                    return self.slice(&object, &parts);
                }
                let key = self.eval(&pair.1, frame)?;
                self.item(&object, &key)
            }
            Kind::Compare(first, rest) => self.eval_compare(first, rest, frame),
            Kind::Bin(op, pair) => {
                if let (Some(a), Some(b)) = (at_hand(&pair.0, frame), at_hand(&pair.1, frame)) {
                    return self.binary(*op, a, b);
                }
                let a = self.eval(&pair.0, frame)?;
                let b = self.eval(&pair.1, frame)?;
                self.binary(*op, &a, &b)
            }
            Kind::Test(_) => self.eval_test(expr, frame).map(Value::Bool),
            Kind::And(pair) => {
                let left = self.eval(&pair.0, frame)?;
                if self.truthy(&left)? { self.eval(&pair.1, frame) } else { Ok(left) }
            }
            Kind::Or(pair) => {
                let left = self.eval(&pair.0, frame)?;
                if self.truthy(&left)? { Ok(left) } else { self.eval(&pair.1, frame) }
            }
            Kind::Not(inner) => {
                let value = self.eval(inner, frame)?;
                Ok(Value::Bool(!self.truthy(&value)?))
            }
            Kind::Cond(parts) => {
                let (test, yes, no) = &**parts;
                let test = self.eval(test, frame)?;
                if self.truthy(&test)? {
                    return self.eval(yes, frame);
                }
                match no {
                    Some(no) => self.eval(no, frame),
                    None => {
                        let place = match &frame.template.name {
                            Some(name) => {
                                format!("line {} in {}", expr.line, halite_value::str_repr(name))
                            }
                            None => format!("line {}", expr.line),
                        };
                        let hint = format!(
                            "the inline if-expression on {place} evaluated to false and no else \
                             section was defined."
                        );
                        // Lenient even in strict mode: `{{ 'x' if y }}` prints nothing.
                        Ok(Undefined::value(false, Missing::Hint(hint)))
                    }
                }
            }
            Kind::Concat(parts) => self.eval_concat(parts, frame),
            Kind::Tuple(items) => {
                let items = self.eval_all(items, frame)?;
                self.tuple(items)
            }
            Kind::List(items) => Ok(Value::from(self.eval_all(items, frame)?)),
            Kind::Dict(items) => {
                let dict = Dict::new();
                for (key, value) in items {
                    let key = self.eval(key, frame)?;
                    let value = self.eval(value, frame)?;
                    let key = self.key(key)?;
                    dict.insert(key, value);
                }
                Ok(Value::Dict(dict))
            }
            Kind::Neg(inner) => {
                let value = self.eval(inner, frame)?;
                self.negate(&value)
            }
            Kind::Pos(inner) => {
                let value = self.eval(inner, frame)?;
                self.positive(&value)
            }
            Kind::Slice(parts) => Ok(object(SliceObject(self.slice_parts(parts, frame)?))),
            Kind::Const(_) | Kind::Name(..) | Kind::Attr(..) => self.eval(expr, frame),
        }
    }

    pub(super) fn eval_all(&mut self, items: &[Expr], frame: &mut Frame) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.eval(item, frame)?);
        }
        Ok(values)
    }

    pub(super) fn slice_parts(
        &mut self,
        parts: &[Option<Expr>; 3],
        frame: &mut Frame,
    ) -> Result<[Value; 3]> {
        let mut values = [Value::Null, Value::Null, Value::Null];
        for (value, part) in values.iter_mut().zip(parts) {
            if let Some(part) = part {
                *value = self.eval(part, frame)?;
            }
        }
        Ok(values)
    }

    pub(super) fn eval_compare(
        &mut self,
        first: &Expr,
        rest: &[(Cmp, Expr)],
        frame: &mut Frame,
    ) -> Result<Value> {
        if let [(op, right)] = rest {
            if let (Some(left), Some(right)) = (at_hand(first, frame), at_hand(right, frame)) {
                return self.compare(*op, left, right).map(Value::Bool);
            }
            if let Kind::Const(right) = &right.kind {
                let left = self.eval(first, frame)?;
                return self.compare(*op, &left, right).map(Value::Bool);
            }
        }
        let mut left = self.eval(first, frame)?;
        for (op, right) in rest {
            let right = self.eval(right, frame)?;
            if !self.compare(*op, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn eval_concat(&mut self, parts: &[Expr], frame: &mut Frame) -> Result<Value> {
        if !frame.context.autoescape() {
            return self.eval_joined(parts, frame);
        }
        let parts = self.eval_all(parts, frame)?;
        let escaping = parts.iter().any(is_markup);
        let mut out = String::new();
        for part in &parts {
            if escaping {
                let text = filters::text::escape(self, part)?;
                out.push_str(&text);
            } else {
                let text = self.str_of(part)?;
                out.push_str(&text);
            }
        }
        self.room(out.len())?;
        Ok(if escaping { markup(out) } else { Value::from(out) })
    }

    /// `a ~ b` without escaping. Texts and numbers are written at once; from the first other value
    /// on everything is evaluated before anything is printed: a later part may change an earlier.
    fn eval_joined(&mut self, parts: &[Expr], frame: &mut Frame) -> Result<Value> {
        let mut out = String::new();
        let mut later = Vec::new();
        for part in parts {
            match at_hand(part, frame) {
                Some(Value::Str(text)) if later.is_empty() => out.push_str(text),
                Some(Value::Int(int)) if later.is_empty() => push_int(&mut out, *int),
                _ => match self.eval(part, frame)? {
                    Value::Str(text) if later.is_empty() => out.push_str(&text),
                    value => later.push(value),
                },
            }
        }
        for value in &later {
            let text = self.str_of(value)?;
            out.push_str(&text);
        }
        self.room(out.len())?;
        Ok(Value::from(out))
    }

    /// Binds a value and plain positional arguments; `None` where that is not all there is to do.
    fn bind_plain(
        &mut self,
        signature: &Signature,
        value: &mut Value,
        args: &CallArgs,
        frame: &mut Frame,
    ) -> Result<Option<Bound>> {
        let count = args.pos.len() + 1;
        if !args.is_plain() || !signature.fits(count) {
            return Ok(None);
        }
        let mut bound = Bound::with(std::mem::take(value));
        for arg in &args.pos {
            bound.push(self.eval(arg, frame)?);
        }
        Ok(Some(bound))
    }

    pub(crate) fn eval_args(&mut self, args: &CallArgs, frame: &mut Frame) -> Result<Args> {
        let mut positional = self.eval_all(&args.pos, frame)?;
        if let Some(star) = &args.star {
            let star = self.eval(star, frame)?;
            let items = self.collect(&star).map_err(|error| {
                if *error.class() == Class::TypeError {
                    let name = star.type_name();
                    type_error(format!("Value after * must be an iterable, not {name}"))
                } else {
                    error
                }
            })?;
            positional.extend(items);
        }
        let mut keyword = Vec::with_capacity(args.kw.len());
        for (name, value) in &args.kw {
            keyword.push((name.clone(), self.eval(value, frame)?));
        }
        if let Some(star_star) = &args.star_star {
            let more = self.eval(star_star, frame)?;
            if let Some(undefined) = undefined(&more) {
                return Err(self.undefined_error(undefined));
            }
            let Value::Dict(more) = &more else {
                let name = more.type_name();
                return Err(type_error(format!(
                    "jinja2.sandbox.SandboxedEnvironment.call() argument after ** must be a mapping, not {name}"
                )));
            };
            for (key, value) in more {
                let Some(key) = text_of(&key) else {
                    return Err(type_error("keywords must be strings"));
                };
                if keyword.iter().any(|(own, _)| own == key) {
                    let key = halite_value::str_repr(key);
                    return Err(type_error(format!(
                        "got multiple values for keyword argument {key}"
                    )));
                }
                keyword.push((key.clone(), value));
            }
        }
        Ok(Args { positional, keyword })
    }

    pub(super) fn call_expr(
        &mut self,
        callee: &Expr,
        args: &CallArgs,
        caller: Option<Value>,
        frame: &mut Frame,
    ) -> Result<Value> {
        // A method is called without making an object of it first.
        if let Kind::Attr(object, name) = &callee.kind {
            let object = self.eval(object, frame)?;
            if methods::has(&object, name) {
                let mut args = self.eval_args(args, frame)?;
                args.keyword.extend(caller.map(|caller| ("caller".into(), caller)));
                return methods::call(self, &object, name, args);
            }
            let callee = self.attribute(&object, name)?;
            return self.call_evaluated(&callee, args, caller, frame);
        }
        let callee = self.eval(callee, frame)?;
        self.call_evaluated(&callee, args, caller, frame)
    }

    pub(super) fn call_evaluated(
        &mut self,
        callee: &Value,
        args: &CallArgs,
        caller: Option<Value>,
        frame: &mut Frame,
    ) -> Result<Value> {
        let mut args = self.eval_args(args, frame)?;
        args.keyword.extend(caller.map(|caller| ("caller".into(), caller)));
        self.call(callee, args)
    }

    pub(crate) fn call(&mut self, callee: &Value, mut args: Args) -> Result<Value> {
        if let Value::Object(object) = callee {
            let any = object.as_any();
            if let Some(own) = any.downcast_ref::<Macro>() {
                return self.call_macro(own, args);
            }
            if let Some(own) = any.downcast_ref::<HostFunction>() {
                for value in &mut args.positional {
                    *value = plain(value);
                }
                for (_, value) in &mut args.keyword {
                    *value = plain(value);
                }
                return own.0.call(args);
            }
            if let Some(own) = any.downcast_ref::<BoundMethod>() {
                return methods::call(self, &own.object, &own.name, args);
            }
            if let Some(own) = any.downcast_ref::<Builtin>() {
                return (own.call)(self, args);
            }
            if let Some(own) = any.downcast_ref::<BlockReference>() {
                return self.call_block(own);
            }
            if let Some(own) = any.downcast_ref::<Loop>() {
                return self.call_loop(own, args);
            }
            if let Some(own) = any.downcast_ref::<Joiner>() {
                let used = std::mem::replace(&mut *own.used.lock(), true);
                return Ok(if used { own.separator.clone() } else { Value::str("") });
            }
            if let Some(undefined) = undefined(callee) {
                return Err(self.undefined_error(undefined));
            }
        }
        Err(type_error(format!("'{}' object is not callable", callee.type_name())))
    }

    pub(super) fn eval_filter(
        &mut self,
        expr: &Expr,
        frame: &mut Frame,
        block: Option<Value>,
    ) -> Result<Value> {
        let Kind::Filter(call) = &expr.kind else { return self.eval(expr, frame) };
        let mut value = match &call.node {
            Some(node) if block.is_some() => {
                self.deeper(|interp| interp.eval_filter(node, frame, block))?
            }
            Some(node) => self.eval(node, frame)?,
            None => block.unwrap_or_default(),
        };
        let Some(found) = &call.found else {
            let name = halite_value::str_repr(&call.name);
            return Err(Error::new(
                Class::TemplateRuntimeError,
                format!("No filter named {name} found."),
            )
            .about(Subject::Filter(call.name.to_string()), self.env.filter_names()));
        };
        if let FilterRef::Builtin(filter) = found
            && let Some(bound) =
                self.bind_plain(&filter.signature, &mut value, &call.args, frame)?
        {
            self.step()?;
            return (filter.run)(self, bound);
        }
        let mut args = self.eval_args(&call.args, frame)?;
        args.positional.insert(0, value);
        self.apply_filter(found, args)
    }

    pub(super) fn eval_test(&mut self, expr: &Expr, frame: &mut Frame) -> Result<bool> {
        let Kind::Test(call) = &expr.kind else { return Ok(false) };
        let mut value = self.eval(&call.node, frame)?;
        let Some(found) = &call.found else {
            let name = halite_value::str_repr(&call.name);
            return Err(Error::new(
                Class::TemplateRuntimeError,
                format!("No test named {name} found."),
            )
            .about(Subject::Test(call.name.to_string()), self.env.test_names()));
        };
        if let TestRef::Builtin(test) = found
            && let Some(bound) = self.bind_plain(&test.signature, &mut value, &call.args, frame)?
        {
            self.step()?;
            return (test.run)(self, bound);
        }
        let mut args = self.eval_args(&call.args, frame)?;
        args.positional.insert(0, value);
        self.apply_test(found, args)
    }
}
