//! Statements.

use std::sync::{Arc, atomic::Ordering};

use halite_value::{SmolStr, Value};

use super::{Flow, Frame, Interp, Result, with_more};
use crate::jinja::{
    ast::{
        Block, Export, Extends, FromImport, Include, Kind, Piece, Scope, SetBlock, Stmt, StmtKind,
        Target, When,
    },
    error::{Class, Error, type_error, value_error},
    objects::*,
};

impl Interp<'_> {
    pub(super) fn body(&mut self, body: &[Stmt], frame: &mut Frame) -> Result<Flow> {
        for stmt in body {
            let flow = self.stmt(stmt, frame)?;
            if flow != Flow::Normal {
                return Ok(flow);
            }
        }
        Ok(Flow::Normal)
    }

    pub(super) fn scoped(
        &mut self,
        body: &[Stmt],
        scope: &Scope,
        frame: &mut Frame,
    ) -> Result<Flow> {
        self.enter(scope, frame);
        self.deeper(|interp| interp.body(body, frame))
    }

    pub(super) fn printed(when: When, frame: &Frame) -> bool {
        match when {
            When::Always => true,
            When::NoParent => frame.parent.is_none(),
            When::Never => false,
        }
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, frame: &mut Frame) -> Result<Flow> {
        self.step()?;
        match &stmt.kind {
            StmtKind::Output(output) => {
                if Self::printed(output.when, frame) {
                    self.output(&output.pieces, frame)?;
                }
            }
            StmtKind::Do(expr) => {
                frame.line = stmt.line;
                self.eval(expr, frame)?;
            }
            StmtKind::Set { target, value, export } => {
                frame.line = stmt.line;
                self.check_namespaces(target, frame)?;
                let value = self.eval(value, frame)?;
                self.assign(target, value, frame)?;
                self.export(export, frame);
            }
            StmtKind::If(node) => {
                for (line, test, body) in &node.branches {
                    frame.line = *line;
                    if self.holds(test, frame)? {
                        return self.deeper(|interp| interp.body(body, frame));
                    }
                }
                if !node.or_else.is_empty() {
                    return self.deeper(|interp| interp.body(&node.or_else, frame));
                }
            }
            StmtKind::For(node) => {
                frame.line = stmt.line;
                let iterable = self.eval(&node.iter, frame)?;
                self.for_loop(node, stmt.line, &iterable, frame, 0, None)?;
            }
            StmtKind::Recurse { iter, func } => {
                frame.line = stmt.line;
                let iterable = self.eval(iter, frame)?;
                let body = Arc::new(LoopBody {
                    template: frame.template.clone(),
                    func: *func,
                    captured: self.close_over(*func, frame),
                    context: frame.context.clone(),
                });
                let text = self.recurse(&body, &iterable, 0)?;
                self.write(&text, &frame.template, stmt.line)?;
            }
            StmtKind::SetBlock(node) => return self.set_block(node, stmt.line, frame),
            StmtKind::Macro(node) => {
                frame.line = stmt.line;
                let own = self.make_macro(Some(node.name.clone()), node.func, frame);
                if node.toplevel {
                    frame.context.set(&node.name, own.clone(), node.exported);
                }
                frame.set(node.var, Some(own));
            }
            StmtKind::CallBlock(node) => {
                let caller = self.make_macro(None, node.func, frame);
                frame.line = stmt.line;
                let Kind::Call(callee, args) = &node.call.kind else { return Ok(Flow::Normal) };
                let result = self.call_expr(callee, args, Some(caller), frame)?;
                self.print(&result, frame, stmt.line)?;
            }
            StmtKind::FilterBlock { filter, body, scope } => {
                let (text, flow) = self.capture(|interp| interp.scoped(body, scope, frame))?;
                if flow != Flow::Normal {
                    return Ok(flow);
                }
                frame.line = stmt.line;
                let text =
                    if frame.context.autoescape() { markup(text) } else { Value::from(text) };
                let result = self.eval_filter(filter, frame, Some(text))?;
                self.print(&result, frame, stmt.line)?;
            }
            StmtKind::With { targets, body, scope } => {
                frame.line = stmt.line;
                let mut values = Vec::with_capacity(targets.len());
                for (_, value) in targets {
                    values.push(self.eval(value, frame)?);
                }
                self.enter(scope, frame);
                for ((target, _), value) in targets.iter().zip(values) {
                    self.assign(target, value, frame)?;
                }
                return self.deeper(|interp| interp.body(body, frame));
            }
            StmtKind::Autoescape { value, body, scope } => {
                frame.line = stmt.line;
                self.enter(scope, frame);
                let value = self.eval(value, frame)?;
                let on = self.truthy(&value)?;
                let before = frame.context.autoescape.swap(on, Ordering::Relaxed);
                let result = self.deeper(|interp| interp.body(body, frame));
                frame.context.autoescape.store(before, Ordering::Relaxed);
                return result;
            }
            StmtKind::Block(node) => {
                if Self::printed(node.when, frame) {
                    frame.line = stmt.line;
                    self.block(node, frame)?;
                }
            }
            StmtKind::Extends(node) => {
                frame.line = stmt.line;
                self.extends(node, frame)?;
            }
            StmtKind::Include(node) => {
                frame.line = stmt.line;
                self.include(node, stmt.line, frame)?;
            }
            StmtKind::Import(node) => {
                frame.line = stmt.line;
                let module =
                    self.import(&node.template, node.with_context, &node.visible, frame)?;
                if node.toplevel {
                    frame.context.set(&node.target, module.clone(), false);
                    frame.context.unexport(&node.target);
                }
                frame.set(node.var, Some(module));
            }
            StmtKind::FromImport(node) => {
                frame.line = stmt.line;
                self.import_names(node, stmt.line, frame)?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Normal)
    }

    pub(super) fn output(&mut self, pieces: &[Piece], frame: &mut Frame) -> Result<()> {
        for piece in pieces {
            match piece {
                Piece::Data(text, line, breaks) => {
                    self.written += text.len();
                    if let Some(map) = &mut self.buffer.map {
                        map.copied(text, *breaks, frame.template.file.as_ref(), *line);
                    }
                    self.buffer.text.push_str(text);
                }
                Piece::Expr(expr) => {
                    frame.line = expr.line;
                    self.write_expr(expr, frame, expr.line)?;
                }
            }
        }
        if self.written > self.env.limits.output_bytes {
            return Err(Error::new(Class::MemoryError, "the template writes too much"));
        }
        Ok(())
    }

    /// Writes a value as `{{ … }}` does.
    pub(super) fn print(&mut self, value: &Value, frame: &Frame, line: u32) -> Result<()> {
        let autoescape = frame.context.autoescape();
        match value {
            Value::Str(text) if !autoescape => return self.write(text, &frame.template, line),
            Value::Int(int) => {
                let mut digits = itoa::Buffer::new();
                return self.write(digits.format(*int), &frame.template, line);
            }
            _ => {}
        }
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let result = self.finalize(value, &mut out).and_then(|()| {
            if autoescape && !is_markup(value) {
                let escaped = crate::jinja::filters::text::escape_html(&out);
                return self.write(&escaped, &frame.template, line);
            }
            self.write(&out, &frame.template, line)
        });
        self.scratch = out;
        result
    }

    pub(super) fn check_namespaces(&mut self, target: &Target, frame: &Frame) -> Result<()> {
        match target {
            Target::Attr(_, var, _) => {
                let value = frame.get(*var);
                if value.as_ref().is_none_or(|value| value.as_object::<Namespace>().is_none()) {
                    return Err(Error::new(
                        Class::TemplateRuntimeError,
                        "cannot assign attribute on non-namespace object",
                    ));
                }
                Ok(())
            }
            Target::Tuple(items) => {
                items.iter().try_for_each(|item| self.check_namespaces(item, frame))
            }
            Target::Name(..) => Ok(()),
        }
    }

    pub(super) fn assign(
        &mut self,
        target: &Target,
        value: Value,
        frame: &mut Frame,
    ) -> Result<()> {
        match target {
            Target::Name(_, var) => frame.set(*var, Some(value)),
            Target::Attr(_, var, attr) => {
                if let Some(namespace) =
                    frame.get(*var).as_ref().and_then(Value::as_object::<Namespace>)
                {
                    namespace.0.insert(attr, value);
                }
            }
            Target::Tuple(targets) => {
                let items = self.unpack(&value, targets.len())?;
                for (target, item) in targets.iter().zip(items) {
                    self.assign(target, item, frame)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn unpack(&mut self, value: &Value, count: usize) -> Result<Vec<Value>> {
        if let Value::Tuple(items) = value
            && items.len() == count
        {
            return Ok(items.to_vec());
        }
        let mut iter = self.iter(value).map_err(|error| {
            if *error.class() == Class::TypeError {
                type_error(format!("cannot unpack non-iterable {} object", value.type_name()))
            } else {
                error
            }
        })?;
        let mut items = Vec::with_capacity(count);
        while let Some(item) = self.next(&mut iter)? {
            if items.len() == count {
                return Err(value_error(format!("too many values to unpack (expected {count})")));
            }
            items.push(item);
        }
        if items.len() < count {
            let got = items.len();
            return Err(value_error(format!(
                "not enough values to unpack (expected {count}, got {got})"
            )));
        }
        Ok(items)
    }

    pub(super) fn export(&mut self, export: &Export, frame: &Frame) {
        if let Export::Context(names) = export {
            for (name, var) in names {
                if let Some(value) = frame.get(*var) {
                    frame.context.set(name, value, !name.starts_with('_'));
                }
            }
        }
    }

    pub(super) fn set_block(
        &mut self,
        node: &SetBlock,
        line: u32,
        frame: &mut Frame,
    ) -> Result<Flow> {
        let (text, flow) = self.capture(|interp| interp.scoped(&node.body, &node.scope, frame))?;
        if flow != Flow::Normal {
            return Ok(flow);
        }
        frame.line = line;
        let autoescape = frame.context.autoescape();
        let text = if autoescape { markup(text) } else { Value::from(text) };
        let value = match &node.filter {
            Some(filter) => {
                let value = self.eval_filter(filter, frame, Some(text))?;
                if autoescape && !node.is_load && !is_markup(&value) {
                    markup(self.str_of(&value)?)
                } else {
                    value
                }
            }
            None => text,
        };
        self.assign(&node.target, value, frame)?;
        self.export(&node.export, frame);
        Ok(Flow::Normal)
    }

    pub(super) fn make_macro(
        &mut self,
        name: Option<SmolStr>,
        func: usize,
        frame: &Frame,
    ) -> Value {
        object(Macro {
            name,
            template: frame.template.clone(),
            func,
            captured: self.close_over(func, frame),
            context: frame.context.clone(),
            autoescape: frame.context.autoescape(),
        })
    }

    pub(super) fn block(&mut self, node: &Block, frame: &mut Frame) -> Result<()> {
        let context = if node.scoped {
            let context = frame.context.derived(self.visible(&node.visible, frame));
            self.remember(&context);
            context
        } else {
            frame.context.clone()
        };
        if node.required && context.block(&node.name, 1).is_none() {
            let name = halite_value::str_repr(&node.name);
            return Err(Error::new(
                Class::TemplateRuntimeError,
                format!("Required block {name} not found"),
            ));
        }
        self.run_block(&node.name, 0, &context)
    }

    pub(super) fn extends(&mut self, node: &Extends, frame: &mut Frame) -> Result<()> {
        let again = match node.after {
            When::Never => false,
            When::NoParent => frame.parent.is_some(),
            When::Always => true,
        };
        if again {
            return Err(Error::new(Class::TemplateRuntimeError, "extended multiple times"));
        }
        let parent = self.find_template(&node.template, frame, false)?;
        let mut blocks = frame.context.blocks.lock();
        for (name, func) in &parent.code.blocks {
            blocks.entry(name.clone()).or_default().push((parent.clone(), *func));
        }
        drop(blocks);
        frame.parent = Some(parent);
        Ok(())
    }

    pub(super) fn include(&mut self, node: &Include, line: u32, frame: &mut Frame) -> Result<()> {
        let template = match self.find_template(&node.template, frame, true) {
            Err(error) if node.ignore_missing && error.is_not_found() && !error.has_spots() => {
                return Ok(());
            }
            other => other?,
        };
        if node.with_context {
            let seen = with_more(frame.context.all(), self.visible(&node.visible, frame));
            let context = self.context(&template, seen);
            return self.run_root(&template, &context);
        }
        let module = self.default_module(&template)?;
        let text =
            module.as_object::<Module>().map(|module| module.body.clone()).unwrap_or_default();
        self.write(&text, &frame.template, line)
    }

    pub(super) fn import_names(
        &mut self,
        node: &FromImport,
        line: u32,
        frame: &mut Frame,
    ) -> Result<()> {
        let imported = self.import(&node.template, node.with_context, &node.visible, frame)?;
        let Some(module) = imported.as_object::<Module>() else { return Ok(()) };
        for (name, alias, var) in &node.names {
            let value = module.get(name).unwrap_or_else(|| {
                let own = module.name.as_deref().unwrap_or_default();
                let place = match &frame.template.name {
                    Some(template) => {
                        format!("line {line} in {}", halite_value::str_repr(template))
                    }
                    None => format!("line {line}"),
                };
                let hint = format!(
                    "the template {} (imported on {place}) does not export the requested name {}",
                    halite_value::str_repr(own),
                    halite_value::str_repr(name)
                );
                let (module, name) = (imported.clone(), name.clone());
                Undefined::value(self.strict(), Missing::Export { module, name, hint })
            });
            if node.toplevel {
                frame.context.set(alias, value.clone(), false);
                frame.context.unexport(alias);
            }
            frame.set(*var, Some(value));
        }
        Ok(())
    }
}
