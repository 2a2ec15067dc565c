//! Where each name lives.
//!
//! Jinja compiles a template to Python functions, and what a name means follows from that: a name is
//! looked up in the context when its scope is *entered*, an `if` opens no scope, a `for` copies outer
//! variables on each turn, a macro sees the variables of what encloses it as they are when it is
//! called. This pass finds the same answers once, so that the evaluator only indexes slots.
//!
//! It also finds the filters and tests (unknown names are errors here, except below an `if`, where
//! they are errors only when reached) and moves the bodies of macros, blocks and recursive loops to
//! functions of their own.

mod find;
mod scopes;

use std::collections::{HashMap, HashSet};

use halite_value::{SmolStr, Value, str_repr};

use self::find::{each_stmt, has_extends, has_scoped_block, stores_loop, undeclared};
use super::{
    ast::*,
    error::{Class, Error, Subject},
    filters::FilterRef,
    tests::TestRef,
};

type Result<T> = std::result::Result<T, Error>;

/// The filters and tests that templates may use.
pub(crate) trait Names {
    fn filter(&self, name: &str) -> Option<FilterRef>;
    fn test(&self, name: &str) -> Option<TestRef>;
    fn filter_names(&self) -> Vec<&str>;
    fn test_names(&self) -> Vec<&str>;
}

pub(crate) fn resolve(body: Vec<Stmt>, source: &str, names: &dyn Names) -> Result<Code> {
    let mut resolver = Resolver {
        names,
        symbols: Vec::new(),
        funcs: Vec::new(),
        has_known_extends: false,
        extends_so_far: 0,
        blocks: Vec::new(),
    };
    resolver.template(body)?;
    let funcs = resolver.funcs.into_iter().map(|func| func.done).collect();
    Ok(Code { funcs, blocks: resolver.blocks, source: source.into(), last: Default::default() })
}

/// A variable: the function it belongs to and its slot there.
type Id = (usize, u32);

#[derive(Clone, Default)]
struct Symbols {
    parent: Option<usize>,
    func: usize,
    uid: usize,
    refs: HashMap<SmolStr, Id>,
    loads: Vec<(u32, Load)>,
    stores: Vec<SmolStr>,
}

impl Symbols {
    fn set_load(&mut self, slot: u32, load: Load) {
        match self.loads.iter_mut().find(|(own, _)| *own == slot) {
            Some(entry) => entry.1 = load,
            None => self.loads.push((slot, load)),
        }
    }

    fn add_store(&mut self, name: &SmolStr) {
        if !self.stores.contains(name) {
            self.stores.push(name.clone());
        }
    }
}

struct FuncState {
    parent: Option<usize>,
    slots: HashMap<(usize, SmolStr), u32>,
    capture_of: HashMap<Id, u32>,
    done: Func,
}

struct Resolver<'a> {
    names: &'a dyn Names,
    symbols: Vec<Symbols>,
    funcs: Vec<FuncState>,
    has_known_extends: bool,
    extends_so_far: usize,
    blocks: Vec<(SmolStr, usize)>,
}

/// The state of the walk: what Jinja calls a frame.
#[derive(Clone, Copy)]
struct Frame {
    symbols: usize,
    func: usize,
    toplevel: bool,
    rootlevel: bool,
    soft: bool,
    in_loop: bool,
    output_check: bool,
}

impl Frame {
    fn soft(self) -> Self {
        Self { soft: true, rootlevel: false, ..self }
    }
}
impl Resolver<'_> {
    fn template(&mut self, mut body: Vec<Stmt>) -> Result<()> {
        let func = self.new_func(FuncKind::Root, None, 1);
        let frame = Frame {
            symbols: self.new_symbols(None, func),
            func,
            toplevel: true,
            rootlevel: true,
            soft: false,
            in_loop: false,
            output_check: has_extends(&body),
        };
        self.collect_blocks(&body, &mut HashSet::new())?;
        self.special(frame, &body, true)?;
        self.analyse(frame, |this, symbols| {
            this.see_body(symbols, &body);
            Ok(())
        })?;
        self.body(&mut body, frame)?;
        let scope = self.scope(frame);
        let root = &mut self.funcs[func].done;
        root.scope = scope;
        root.body = body;
        Ok(())
    }

    /// Gives the special names `self` and `super` their slots where they are used.
    fn special(&mut self, frame: Frame, body: &[Stmt], root: bool) -> Result<()> {
        let used = undeclared(body, &["self", "super"]);
        self.analyse(frame, |this, symbols| {
            if used.contains(&"self") {
                let slot = this.param(symbols, &"self".into());
                symbols.stores.retain(|name| name != "self");
                this.funcs[frame.func].done.self_var = Some(slot);
            }
            if used.contains(&"super") && !root {
                let slot = this.param(symbols, &"super".into());
                symbols.stores.retain(|name| name != "super");
                this.funcs[frame.func].done.super_var = Some(slot);
            }
            Ok(())
        })
    }

    fn collect_blocks(&mut self, body: &[Stmt], seen: &mut HashSet<SmolStr>) -> Result<()> {
        let mut error = None;
        each_stmt(body, &mut |stmt| {
            if let StmtKind::Block(block) = &stmt.kind
                && !seen.insert(block.name.clone())
                && error.is_none()
            {
                let message = format!("block {} defined twice", str_repr(&block.name));
                error = Some(Error::syntax(Class::TemplateAssertionError, message, stmt.line));
            }
        });
        error.map_or(Ok(()), Err)
    }

    fn body(&mut self, body: &mut [Stmt], frame: Frame) -> Result<()> {
        body.iter_mut().try_for_each(|stmt| self.stmt(stmt, frame))
    }

    fn when(&self, frame: Frame) -> When {
        match (frame.output_check, self.has_known_extends) {
            (false, _) => When::Always,
            (true, true) => When::Never,
            (true, false) => When::NoParent,
        }
    }

    fn stmt(&mut self, stmt: &mut Stmt, frame: Frame) -> Result<()> {
        let line = stmt.line;
        match &mut stmt.kind {
            StmtKind::Output(output) => {
                output.when = self.when(frame);
                for piece in &mut output.pieces {
                    if let Piece::Expr(expr) = piece {
                        self.expr(expr, frame)?;
                    }
                }
            }
            StmtKind::Do(expr) => self.expr(expr, frame)?,
            StmtKind::If(node) => {
                let soft = frame.soft();
                for (_, test, body) in &mut node.branches {
                    self.expr(test, soft)?;
                    self.body(body, soft)?;
                }
                self.body(&mut node.or_else, soft)?;
            }
            StmtKind::For(node) => {
                if let Some(func) = self.for_stmt(node, line, frame)? {
                    let none = Expr { line, height: 0, kind: Kind::Const(Value::Null) };
                    let iter = std::mem::replace(&mut node.iter, none);
                    let StmtKind::For(node) =
                        std::mem::replace(&mut stmt.kind, StmtKind::Recurse { iter, func })
                    else {
                        return Ok(());
                    };
                    self.funcs[func].done.loop_node = Some(node);
                }
            }
            StmtKind::Recurse { .. } => {}
            StmtKind::Set { target, value, export } => {
                *export = self.assign(target, frame);
                self.expr(value, frame)?;
            }
            StmtKind::SetBlock(node) => {
                let mut inner = self.inner(frame);
                inner.output_check = false;
                self.analyse(inner, |this, symbols| {
                    this.see_body(symbols, &node.body);
                    Ok(())
                })?;
                self.body(&mut node.body, inner)?;
                node.export = self.assign(&mut node.target, frame);
                if let Some(filter) = &mut node.filter {
                    // Jinja does not look at the filter's arguments when it finds names.
                    self.analyse(inner, |this, symbols| {
                        this.see_expr(symbols, filter);
                        Ok(())
                    })?;
                    self.expr(filter, inner)?;
                }
                node.scope = self.scope(inner);
            }
            StmtKind::Macro(node) => {
                let kind = FuncKind::Macro(node.name.clone());
                node.func =
                    self.function(kind, &mut node.signature, &mut node.body, line, frame)?;
                node.var = self.var(frame, &node.name);
                node.toplevel = frame.toplevel;
                node.exported = frame.toplevel && !node.name.starts_with('_');
            }
            StmtKind::CallBlock(node) => {
                let kind = FuncKind::Macro("caller".into());
                node.func =
                    self.function(kind, &mut node.signature, &mut node.body, line, frame)?;
                self.expr(&mut node.call, frame)?;
            }
            StmtKind::FilterBlock { filter, body, scope } => {
                let inner = self.inner(frame);
                self.analyse(inner, |this, symbols| {
                    this.see_body(symbols, body);
                    this.see_expr(symbols, filter);
                    Ok(())
                })?;
                self.body(body, inner)?;
                self.expr(filter, inner)?;
                *scope = self.scope(inner);
            }
            StmtKind::With { targets, body, scope } => {
                let inner = self.inner(frame);
                self.analyse(inner, |this, symbols| {
                    targets.iter().for_each(|(target, _)| this.see_target(symbols, target, true));
                    this.see_body(symbols, body);
                    Ok(())
                })?;
                for (target, value) in targets.iter_mut() {
                    self.target(target, inner);
                    self.expr(value, frame)?;
                }
                self.body(body, inner)?;
                *scope = self.scope(inner);
            }
            StmtKind::Autoescape { value, body, scope } => {
                let inner = self.inner(frame);
                self.analyse(inner, |this, symbols| {
                    this.see_expr(symbols, value);
                    this.see_body(symbols, body);
                    Ok(())
                })?;
                self.expr(value, inner)?;
                self.body(body, inner)?;
                *scope = self.scope(inner);
            }
            StmtKind::Block(node) => self.block(node, line, frame)?,
            StmtKind::Extends(node) => {
                if !frame.toplevel {
                    return Err(Error::syntax(
                        Class::TemplateAssertionError,
                        "cannot use extend from a non top-level scope",
                        line,
                    ));
                }
                if self.extends_so_far > 0 {
                    node.after = if self.has_known_extends { When::Always } else { When::NoParent };
                }
                self.expr(&mut node.template, frame)?;
                self.has_known_extends |= frame.rootlevel;
                self.extends_so_far += 1;
            }
            StmtKind::Include(node) => {
                self.expr(&mut node.template, frame)?;
                if node.with_context {
                    node.visible = self.visible(frame);
                }
            }
            StmtKind::Import(node) => {
                self.expr(&mut node.template, frame)?;
                if node.with_context {
                    node.visible = self.visible(frame);
                }
                node.var = self.var(frame, &node.target);
                node.toplevel = frame.toplevel;
            }
            StmtKind::FromImport(node) => {
                self.expr(&mut node.template, frame)?;
                if node.with_context {
                    node.visible = self.visible(frame);
                }
                for (_, alias, var) in &mut node.names {
                    *var = self.var(frame, alias);
                }
                node.toplevel = frame.toplevel;
            }
            StmtKind::Break | StmtKind::Continue if !frame.in_loop => {
                // Genuine Jinja lets Python's compiler find this one.
                let message = match stmt.kind {
                    StmtKind::Break => "'break' outside loop",
                    _ => "'continue' not properly in loop",
                };
                return Err(Error::syntax(Class::SyntaxError, message, line));
            }
            StmtKind::Break | StmtKind::Continue => {}
        }
        Ok(())
    }

    fn block(&mut self, node: &mut Block, line: u32, frame: Frame) -> Result<()> {
        node.when = if !frame.toplevel {
            When::Always
        } else if self.has_known_extends {
            When::Never
        } else if self.extends_so_far > 0 {
            When::NoParent
        } else {
            When::Always
        };
        if node.scoped {
            node.visible = self.visible(frame);
        }
        let func = self.new_func(FuncKind::Block(node.name.clone()), None, line);
        self.blocks.push((node.name.clone(), func));
        let inner = Frame {
            symbols: self.new_symbols(None, func),
            func,
            toplevel: false,
            rootlevel: false,
            soft: false,
            in_loop: false,
            output_check: false,
        };
        let mut body = std::mem::take(&mut node.body);
        self.special(inner, &body, false)?;
        self.analyse(inner, |this, symbols| {
            this.see_body(symbols, &body);
            Ok(())
        })?;
        self.body(&mut body, inner)?;
        let scope = self.scope(inner);
        let done = &mut self.funcs[func].done;
        done.scope = scope;
        done.body = body;
        Ok(())
    }

    fn for_stmt(&mut self, node: &mut For, line: u32, frame: Frame) -> Result<Option<usize>> {
        let extended = node.recursive
            || undeclared(&node.body, &["loop"]).contains(&"loop")
            || has_scoped_block(&node.body)
            || has_scoped_block(&node.or_else);
        let func = if node.recursive {
            self.new_func(FuncKind::Loop, Some(frame.func), line)
        } else {
            frame.func
        };
        let body_frame = Frame { in_loop: true, ..self.inner_in(frame, func) };
        let else_frame = self.inner_in(frame, func);
        let mut loop_slot = None;
        self.analyse(body_frame, |this, symbols| {
            if extended {
                loop_slot = Some(this.param(symbols, &"loop".into()));
            }
            this.see_target(symbols, &node.target, true);
            this.see_body(symbols, &node.body);
            Ok(())
        })?;
        self.analyse(else_frame, |this, symbols| {
            this.see_body(symbols, &node.or_else);
            Ok(())
        })?;
        node.loop_var = loop_slot.map(Var::Local);
        if let Some(mut test) = node.test.take() {
            let test_func = self.new_func(FuncKind::Loop, Some(func), line);
            let test_frame = self.inner_in(frame, test_func);
            let mut target = node.target.clone();
            self.analyse(test_frame, |this, symbols| {
                this.see_target(symbols, &target, true);
                this.see_expr(symbols, &test);
                Ok(())
            })?;
            self.target(&mut target, test_frame);
            self.expr(&mut test, test_frame)?;
            let scope = self.scope(test_frame);
            let done = &mut self.funcs[test_func].done;
            done.scope = scope;
            done.test = Some((target, test));
            node.test_func = Some(test_func);
        }
        if stores_loop(node) {
            return Err(Error::syntax(
                Class::TemplateAssertionError,
                "Can't assign to special loop variable in for-loop target",
                line,
            ));
        }
        self.target(&mut node.target, body_frame);
        self.expr(&mut node.iter, frame)?;
        self.body(&mut node.body, body_frame)?;
        node.scope = self.scope(body_frame);
        self.body(&mut node.or_else, else_frame)?;
        node.else_scope = self.scope(else_frame);
        Ok(node.recursive.then_some(func))
    }

    /// Makes a function of a macro's or call block's body.
    fn function(
        &mut self,
        kind: FuncKind,
        signature: &mut Signature,
        body: &mut Vec<Stmt>,
        line: u32,
        frame: Frame,
    ) -> Result<usize> {
        let func = self.new_func(kind, Some(frame.func), line);
        let mut inner = self.inner_in(frame, func);
        inner.output_check = false;
        let mut body = std::mem::take(body);
        let mut defaults = std::mem::take(&mut signature.defaults);
        let used = undeclared(&body, &["caller", "kwargs", "varargs"]);
        let own = |name: &str| signature.names.iter().position(|own| own == name);
        let explicit_caller = own("caller");
        if let Some(index) = explicit_caller
            && used.contains(&"caller")
            && index + defaults.len() < signature.names.len()
        {
            return Err(Error::syntax(
                Class::TemplateAssertionError,
                "When defining macros or call blocks the special \"caller\" argument must be \
                 omitted or be given a default.",
                line,
            ));
        }
        let mut params = Params { explicit_caller: explicit_caller.is_some(), ..Params::default() };
        self.analyse(inner, |this, symbols| {
            for name in &signature.names {
                let slot = this.param(symbols, name);
                params.slots.push(slot);
            }
            defaults.iter().for_each(|default| this.see_expr(symbols, default));
            this.see_body(symbols, &body);
            if used.contains(&"caller") {
                params.accesses_caller = true;
                if explicit_caller.is_none() {
                    params.caller = Some(this.param(symbols, &"caller".into()));
                }
            }
            if used.contains(&"kwargs") && own("kwargs").is_none() {
                params.kwargs = Some(this.param(symbols, &"kwargs".into()));
            }
            if used.contains(&"varargs") && own("varargs").is_none() {
                params.varargs = Some(this.param(symbols, &"varargs".into()));
            }
            Ok(())
        })?;
        for default in &mut defaults {
            self.expr(default, inner)?;
        }
        self.body(&mut body, inner)?;
        let scope = self.scope(inner);
        params.names = std::mem::take(&mut signature.names);
        params.defaults = defaults;
        let done = &mut self.funcs[func].done;
        done.scope = scope;
        done.body = body;
        done.params = params;
        Ok(func)
    }

    fn assign(&mut self, target: &mut Target, frame: Frame) -> Export {
        self.target(target, frame);
        if !frame.toplevel {
            return Export::No;
        }
        let mut names = Vec::new();
        target.each_name(&mut |name| names.push(name.clone()));
        if names.is_empty() {
            return Export::No;
        }
        Export::Context(
            names.into_iter().map(|name| (name.clone(), self.var(frame, &name))).collect(),
        )
    }

    fn target(&mut self, target: &mut Target, frame: Frame) {
        match target {
            Target::Name(name, var) | Target::Attr(name, var, _) => *var = self.var(frame, name),
            Target::Tuple(items) => items.iter_mut().for_each(|item| self.target(item, frame)),
        }
    }

    fn args(&mut self, args: &mut CallArgs, frame: Frame) -> Result<()> {
        args.pos.iter_mut().try_for_each(|arg| self.expr(arg, frame))?;
        args.kw.iter_mut().try_for_each(|(_, arg)| self.expr(arg, frame))?;
        args.star.iter_mut().try_for_each(|arg| self.expr(arg, frame))?;
        args.star_star.iter_mut().try_for_each(|arg| self.expr(arg, frame))
    }

    fn expr(&mut self, expr: &mut Expr, frame: Frame) -> Result<()> {
        let line = expr.line;
        match &mut expr.kind {
            Kind::Const(_) => {}
            Kind::Name(name, var) => *var = self.var(frame, name),
            Kind::Tuple(items) | Kind::List(items) | Kind::Concat(items) => {
                items.iter_mut().try_for_each(|item| self.expr(item, frame))?;
            }
            Kind::Dict(items) => items.iter_mut().try_for_each(|(key, value)| {
                self.expr(key, frame)?;
                self.expr(value, frame)
            })?,
            Kind::Cond(parts) => {
                let soft = frame.soft();
                self.expr(&mut parts.1, soft)?;
                self.expr(&mut parts.0, soft)?;
                if let Some(no) = &mut parts.2 {
                    self.expr(no, soft)?;
                }
            }
            Kind::And(pair) | Kind::Or(pair) | Kind::Bin(_, pair) | Kind::Item(pair) => {
                self.expr(&mut pair.0, frame)?;
                self.expr(&mut pair.1, frame)?;
            }
            Kind::Not(one) | Kind::Neg(one) | Kind::Pos(one) | Kind::Attr(one, _) => {
                self.expr(one, frame)?;
            }
            Kind::Compare(first, rest) => {
                self.expr(first, frame)?;
                rest.iter_mut().try_for_each(|(_, expr)| self.expr(expr, frame))?;
            }
            Kind::Slice(parts) => {
                parts.iter_mut().flatten().try_for_each(|part| self.expr(part, frame))?;
            }
            Kind::Call(callee, args) => {
                self.expr(callee, frame)?;
                self.args(args, frame)?;
            }
            Kind::Filter(call) => {
                call.found = self.names.filter(&call.name);
                if call.found.is_none() && !frame.soft {
                    let message = format!("No filter named {}.", str_repr(&call.name));
                    return Err(Error::syntax(Class::TemplateAssertionError, message, line)
                        .about(Subject::Filter(call.name.to_string()), self.names.filter_names()));
                }
                if let Some(node) = &mut call.node {
                    self.expr(node, frame)?;
                }
                self.args(&mut call.args, frame)?;
            }
            Kind::Test(call) => {
                call.found = self.names.test(&call.name);
                if call.found.is_none() && !frame.soft {
                    let message = format!("No test named {}.", str_repr(&call.name));
                    return Err(Error::syntax(Class::TemplateAssertionError, message, line)
                        .about(Subject::Test(call.name.to_string()), self.names.test_names()));
                }
                self.expr(&mut call.node, frame)?;
                self.args(&mut call.args, frame)?;
            }
        }
        Ok(())
    }
}
