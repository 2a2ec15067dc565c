//! Expressions.

use halite_value::{Dict, Value};

use super::{Frame, Interp, Result};
use crate::jinja::{
    ast::{CallArgs, Cmp, Expr, Kind},
    call::{Args, Bound},
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

/// What `'x' if y` is when `y` is false: lenient even in strict mode, it prints nothing.
fn no_else(line: u32, frame: &Frame) -> Value {
    let place = match &frame.template.name {
        Some(name) => format!("line {line} in {}", halite_value::str_repr(name)),
        None => format!("line {line}"),
    };
    let hint = format!(
        "the inline if-expression on {place} evaluated to false and no else section was defined."
    );
    Undefined::value(false, Missing::Hint(hint))
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
                if let Some(object) = at_hand(object, frame) {
                    return self.attribute(object, name);
                }
                let object = self.eval_inner(object, frame)?;
                self.attribute(&object, name)
            }
            _ => self.deeper(|interp| interp.eval_large(expr, frame)),
        }
    }

    /// Tells whether a condition is true, without making a value of the answer.
    pub(super) fn holds(&mut self, test: &Expr, frame: &mut Frame) -> Result<bool> {
        match &test.kind {
            Kind::Compare(first, rest) => {
                self.step()?;
                self.deeper(|interp| interp.compare_all(first, rest, frame))
            }
            Kind::Test(_) => {
                self.step()?;
                self.deeper(|interp| interp.eval_test(test, frame))
            }
            _ => {
                let value = self.eval(test, frame)?;
                self.truthy(&value)
            }
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
            Kind::Compare(first, rest) => self.compare_all(first, rest, frame).map(Value::Bool),
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
            Kind::Not(inner) => Ok(Value::Bool(!self.holds(inner, frame)?)),
            Kind::Cond(parts) => {
                let (test, yes, no) = &**parts;
                if self.holds(test, frame)? {
                    return self.eval(yes, frame);
                }
                match no {
                    Some(no) => self.eval(no, frame),
                    None => Ok(no_else(expr.line, frame)),
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

    fn compare_all(
        &mut self,
        first: &Expr,
        rest: &[(Cmp, Expr)],
        frame: &mut Frame,
    ) -> Result<bool> {
        if let [(op, right)] = rest {
            if let (Some(left), Some(right)) = (at_hand(first, frame), at_hand(right, frame)) {
                return self.compare(*op, left, right);
            }
            if let Kind::Const(right) = &right.kind {
                let left = self.eval(first, frame)?;
                return self.compare(*op, &left, right);
            }
        }
        let mut left = self.eval(first, frame)?;
        for (op, right) in rest {
            let right = self.eval(right, frame)?;
            if !self.compare(*op, &left, &right)? {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
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

    /// Writes `{{ … }}`. What a choice or a `~` is made of is written as it is found, without
    /// making one text of it first.
    pub(super) fn write_expr(&mut self, expr: &Expr, frame: &mut Frame, line: u32) -> Result<()> {
        if let Some(value) = at_hand(expr, frame) {
            return self.print(value, frame, line);
        }
        match &expr.kind {
            Kind::Cond(parts) if parts.2.is_some() => {
                self.step()?;
                let (test, yes, no) = &**parts;
                let chosen = if self.holds(test, frame)? { Some(yes) } else { no.as_ref() };
                match chosen {
                    Some(chosen) => self.deeper(|interp| interp.write_expr(chosen, frame, line)),
                    None => Ok(()),
                }
            }
            Kind::Concat(parts) if !frame.context.autoescape() => {
                self.step()?;
                self.write_joined(parts, frame, line)
            }
            _ => {
                let value = self.eval(expr, frame)?;
                self.print(&value, frame, line)
            }
        }
    }

    /// Writes `a ~ b`: see [`Self::eval_joined`] for what waits for what.
    fn write_joined(&mut self, parts: &[Expr], frame: &mut Frame, line: u32) -> Result<()> {
        let mut later = Vec::new();
        for part in parts {
            match at_hand(part, frame) {
                Some(value @ (Value::Str(_) | Value::Int(_))) if later.is_empty() => {
                    self.print(value, frame, line)?;
                }
                _ => match self.deeper(|interp| interp.eval(part, frame))? {
                    value @ Value::Str(_) if later.is_empty() => self.print(&value, frame, line)?,
                    value => later.push(value),
                },
            }
        }
        for value in &later {
            let text = self.str_of(value)?;
            self.write(&text, &frame.template, line)?;
        }
        Ok(())
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

    /// Adds plain positional arguments to the value that is bound already.
    fn bind_plain(&mut self, bound: &mut Bound, args: &CallArgs, frame: &mut Frame) -> Result<()> {
        for arg in &args.pos {
            bound.push(self.eval(arg, frame)?);
        }
        self.step()
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
        let value = match &call.node {
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
            && filter.signature.takes(&call.args)
        {
            let mut bound = Bound::with(value);
            self.bind_plain(&mut bound, &call.args, frame)?;
            return (filter.run)(self, &mut bound);
        }
        let mut args = self.eval_args(&call.args, frame)?;
        args.positional.insert(0, value);
        self.apply_filter(found, args)
    }

    pub(super) fn eval_test(&mut self, expr: &Expr, frame: &mut Frame) -> Result<bool> {
        let Kind::Test(call) = &expr.kind else { return Ok(false) };
        let value = self.eval(&call.node, frame)?;
        let Some(found) = &call.found else {
            let name = halite_value::str_repr(&call.name);
            return Err(Error::new(
                Class::TemplateRuntimeError,
                format!("No test named {name} found."),
            )
            .about(Subject::Test(call.name.to_string()), self.env.test_names()));
        };
        if let TestRef::Builtin(test) = found
            && test.signature.takes(&call.args)
        {
            let mut bound = Bound::with(value);
            self.bind_plain(&mut bound, &call.args, frame)?;
            return (test.run)(self, &mut bound);
        }
        let mut args = self.eval_args(&call.args, frame)?;
        args.positional.insert(0, value);
        self.apply_test(found, args)
    }
}
