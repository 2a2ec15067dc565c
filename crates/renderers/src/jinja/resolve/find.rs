//! Questions about a tree: does it extend another, which names does it read.

use crate::jinja::ast::*;

/// Calls `f` for every statement, however deep.
pub(super) fn each_stmt<'a>(body: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        f(stmt);
        match &stmt.kind {
            StmtKind::If(node) => {
                node.branches.iter().for_each(|(_, _, body)| each_stmt(body, f));
                each_stmt(&node.or_else, f);
            }
            StmtKind::For(node) => {
                each_stmt(&node.body, f);
                each_stmt(&node.or_else, f);
            }
            StmtKind::SetBlock(node) => each_stmt(&node.body, f),
            StmtKind::Macro(node) => each_stmt(&node.body, f),
            StmtKind::CallBlock(node) => each_stmt(&node.body, f),
            StmtKind::Block(node) => each_stmt(&node.body, f),
            StmtKind::FilterBlock { body, .. }
            | StmtKind::With { body, .. }
            | StmtKind::Autoescape { body, .. } => each_stmt(body, f),
            _ => {}
        }
    }
}

pub(super) fn any_stmt(body: &[Stmt], test: impl Fn(&Stmt) -> bool) -> bool {
    let mut found = false;
    each_stmt(body, &mut |stmt| found |= test(stmt));
    found
}

pub(super) fn has_extends(body: &[Stmt]) -> bool {
    any_stmt(body, |stmt| matches!(stmt.kind, StmtKind::Extends(_)))
}

pub(super) fn has_scoped_block(body: &[Stmt]) -> bool {
    any_stmt(body, |stmt| matches!(&stmt.kind, StmtKind::Block(block) if block.scoped))
}

pub(super) fn stores_loop(node: &For) -> bool {
    fn is_loop(target: &Target) -> bool {
        let mut found = false;
        target.each_name(&mut |name| found |= name == "loop");
        found
    }
    let stores = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Set { target, .. } => is_loop(target),
        StmtKind::SetBlock(node) => is_loop(&node.target),
        StmtKind::For(node) => is_loop(&node.target),
        _ => false,
    };
    is_loop(&node.target) || any_stmt(&node.body, stores) || any_stmt(&node.or_else, stores)
}

/// Returns which of the names are read before anything assigns them. Blocks are not looked into.
pub(super) fn undeclared(body: &[Stmt], names: &[&'static str]) -> Vec<&'static str> {
    let mut finder = Finder { wanted: names.to_vec(), found: Vec::new() };
    finder.body(body);
    finder.found
}

struct Finder {
    wanted: Vec<&'static str>,
    found: Vec<&'static str>,
}

impl Finder {
    fn forget(&mut self, name: &str) {
        self.wanted.retain(|wanted| *wanted != name);
    }

    fn target(&mut self, target: &Target) {
        target.each_name(&mut |name| self.forget(name));
    }

    fn expr(&mut self, expr: &Expr) {
        if let Kind::Name(name, _) = &expr.kind
            && let Some(wanted) = self.wanted.iter().find(|wanted| **wanted == name.as_str())
            && !self.found.contains(wanted)
        {
            self.found.push(wanted);
        }
        let mut children = Vec::new();
        each_child(expr, &mut |child| children.push(child));
        children.into_iter().for_each(|child| self.expr(child));
    }

    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn signature(&mut self, signature: &Signature) {
        signature.names.iter().for_each(|name| self.forget(name));
        signature.defaults.iter().for_each(|default| self.expr(default));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Output(output) => output.pieces.iter().for_each(|piece| {
                if let Piece::Expr(expr) = piece {
                    self.expr(expr);
                }
            }),
            StmtKind::Do(expr) => self.expr(expr),
            StmtKind::If(node) => {
                for (_, test, body) in &node.branches {
                    self.expr(test);
                    self.body(body);
                }
                self.body(&node.or_else);
            }
            StmtKind::For(node) => {
                self.target(&node.target);
                self.expr(&node.iter);
                self.body(&node.body);
                self.body(&node.or_else);
                node.test.iter().for_each(|test| self.expr(test));
            }
            StmtKind::Set { target, value, .. } => {
                self.target(target);
                self.expr(value);
            }
            StmtKind::SetBlock(node) => {
                self.target(&node.target);
                node.filter.iter().for_each(|filter| self.expr(filter));
                self.body(&node.body);
            }
            StmtKind::Macro(node) => {
                self.signature(&node.signature);
                self.body(&node.body);
            }
            StmtKind::CallBlock(node) => {
                self.expr(&node.call);
                self.signature(&node.signature);
                self.body(&node.body);
            }
            StmtKind::FilterBlock { filter, body, .. } => {
                self.body(body);
                self.expr(filter);
            }
            StmtKind::With { targets, body, .. } => {
                targets.iter().for_each(|(target, _)| self.target(target));
                targets.iter().for_each(|(_, value)| self.expr(value));
                self.body(body);
            }
            StmtKind::Autoescape { value, body, .. } => {
                self.expr(value);
                self.body(body);
            }
            StmtKind::Extends(node) => self.expr(&node.template),
            StmtKind::Include(node) => self.expr(&node.template),
            StmtKind::Import(node) => self.expr(&node.template),
            StmtKind::FromImport(node) => self.expr(&node.template),
            StmtKind::Recurse { .. }
            | StmtKind::Block(_)
            | StmtKind::Break
            | StmtKind::Continue => {}
        }
    }
}
