//! Functions, scopes and the variables in them; and what one scope reads and writes.

use std::collections::HashMap;

use halite_value::SmolStr;

use super::{Frame, FuncState, Id, Resolver, Result, Symbols};
use crate::jinja::ast::*;

impl Resolver<'_> {
    pub(super) fn new_func(&mut self, kind: FuncKind, parent: Option<usize>, line: u32) -> usize {
        self.funcs.push(FuncState {
            parent,
            slots: HashMap::new(),
            capture_of: HashMap::new(),
            done: Func {
                kind,
                line,
                slots: 0,
                cells: Vec::new(),
                captures: Vec::new(),
                scope: Scope::default(),
                body: Vec::new(),
                params: Params::default(),
                self_var: None,
                super_var: None,
                test: None,
                loop_node: None,
            },
        });
        self.funcs.len() - 1
    }

    pub(super) fn new_symbols(&mut self, parent: Option<usize>, func: usize) -> usize {
        let uid = self.symbols.len();
        self.symbols.push(Symbols { parent, func, uid, ..Symbols::default() });
        uid
    }

    pub(super) fn inner(&mut self, frame: Frame) -> Frame {
        self.inner_in(frame, frame.func)
    }

    pub(super) fn inner_in(&mut self, frame: Frame, func: usize) -> Frame {
        Frame {
            symbols: self.new_symbols(Some(frame.symbols), func),
            func,
            toplevel: false,
            rootlevel: false,
            soft: false,
            in_loop: frame.in_loop && func == frame.func,
            output_check: frame.output_check,
        }
    }

    pub(super) fn slot(&mut self, symbols: &Symbols, name: &SmolStr) -> u32 {
        let func = &mut self.funcs[symbols.func];
        let next = func.done.slots;
        let slot = *func.slots.entry((symbols.uid, name.clone())).or_insert(next);
        func.done.slots = func.done.slots.max(slot + 1);
        slot
    }

    pub(super) fn define(&mut self, symbols: &mut Symbols, name: &SmolStr, load: Load) -> u32 {
        let slot = self.slot(symbols, name);
        symbols.refs.insert(name.clone(), (symbols.func, slot));
        symbols.set_load(slot, load);
        slot
    }

    pub(super) fn find(&self, symbols: &Symbols, name: &str) -> Option<Id> {
        symbols.refs.get(name).copied().or_else(|| self.find_in(symbols.parent, name))
    }

    pub(super) fn find_in(&self, mut symbols: Option<usize>, name: &str) -> Option<Id> {
        while let Some(index) = symbols {
            if let Some(id) = self.symbols[index].refs.get(name) {
                return Some(*id);
            }
            symbols = self.symbols[index].parent;
        }
        None
    }

    /// Returns how code of a function reaches a variable, capturing it where needed.
    pub(super) fn reach(&mut self, from: usize, id: Id) -> Var {
        if from == id.0 { Var::Local(id.1) } else { Var::Captured(self.capture(from, id)) }
    }

    pub(super) fn capture(&mut self, from: usize, id: Id) -> u32 {
        if let Some(known) = self.funcs[from].capture_of.get(&id) {
            return *known;
        }
        let source = match self.funcs[from].parent {
            Some(parent) if parent != id.0 => Capture::Captured(self.capture(parent, id)),
            _ => {
                let cells = &mut self.funcs[id.0].done.cells;
                if !cells.contains(&id.1) {
                    cells.push(id.1);
                }
                Capture::Local(id.1)
            }
        };
        let captures = &mut self.funcs[from].done.captures;
        captures.push(source);
        let index = (captures.len() - 1) as u32;
        self.funcs[from].capture_of.insert(id, index);
        index
    }

    pub(super) fn var(&mut self, frame: Frame, name: &SmolStr) -> Var {
        match self.find_in(Some(frame.symbols), name) {
            Some(id) => self.reach(frame.func, id),
            None => {
                // Every name was analysed with its scope; this keeps a slip harmless.
                let mut symbols = std::mem::take(&mut self.symbols[frame.symbols]);
                let slot = self.define(&mut symbols, name, Load::Resolve(name.clone()));
                self.symbols[frame.symbols] = symbols;
                Var::Local(slot)
            }
        }
    }

    pub(super) fn scope(&self, frame: Frame) -> Scope {
        let symbols = &self.symbols[frame.symbols];
        let mut scope = Scope::default();
        for (slot, load) in &symbols.loads {
            match load {
                Load::Resolve(name) if !symbols.stores.contains(name) => {
                    scope.fixed.push((*slot, name.clone()));
                }
                load => scope.loads.push((*slot, load.clone())),
            }
        }
        scope
    }

    /// Returns every variable that was assigned in this or an outer scope.
    pub(super) fn visible(&mut self, frame: Frame) -> Vec<(SmolStr, Var)> {
        let mut names: Vec<SmolStr> = Vec::new();
        let mut at = Some(frame.symbols);
        while let Some(index) = at {
            for name in &self.symbols[index].stores {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            at = self.symbols[index].parent;
        }
        names.into_iter().map(|name| (name.clone(), self.var(frame, &name))).collect()
    }

    // ---- analysis of one scope

    pub(super) fn analyse(
        &mut self,
        frame: Frame,
        visit: impl FnOnce(&mut Self, &mut Symbols) -> Result<()>,
    ) -> Result<()> {
        let mut symbols = std::mem::take(&mut self.symbols[frame.symbols]);
        let result = visit(self, &mut symbols);
        self.symbols[frame.symbols] = symbols;
        result
    }

    pub(super) fn load(&mut self, symbols: &mut Symbols, name: &SmolStr) {
        if self.find(symbols, name).is_none() {
            self.define(symbols, name, Load::Resolve(name.clone()));
        }
    }

    pub(super) fn store(&mut self, symbols: &mut Symbols, name: &SmolStr) {
        symbols.add_store(name);
        if symbols.refs.contains_key(name) {
            return;
        }
        if let Some(outer) = self.find_in(symbols.parent, name) {
            let alias = Load::Alias(self.reach(symbols.func, outer));
            self.define(symbols, name, alias);
        } else {
            self.define(symbols, name, Load::Undefined);
        }
    }

    pub(super) fn param(&mut self, symbols: &mut Symbols, name: &SmolStr) -> u32 {
        symbols.add_store(name);
        self.define(symbols, name, Load::Param)
    }

    pub(super) fn see_expr(&mut self, symbols: &mut Symbols, expr: &Expr) {
        if let Kind::Name(name, _) = &expr.kind {
            self.load(symbols, name);
        }
        let mut children = Vec::new();
        each_child(expr, &mut |child| children.push(child));
        for child in children {
            self.see_expr(symbols, child);
        }
    }

    pub(super) fn see_target(&mut self, symbols: &mut Symbols, target: &Target, as_param: bool) {
        match target {
            Target::Name(name, _) if as_param => {
                self.param(symbols, name);
            }
            Target::Name(name, _) => self.store(symbols, name),
            Target::Tuple(items) => {
                items.iter().for_each(|item| self.see_target(symbols, item, as_param));
            }
            Target::Attr(name, ..) => self.load(symbols, name),
        }
    }

    pub(super) fn see_body(&mut self, symbols: &mut Symbols, body: &[Stmt]) {
        for stmt in body {
            self.see_stmt(symbols, stmt);
        }
    }

    pub(super) fn see_stmt(&mut self, symbols: &mut Symbols, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Output(output) => {
                for piece in &output.pieces {
                    if let Piece::Expr(expr) = piece {
                        self.see_expr(symbols, expr);
                    }
                }
            }
            StmtKind::Do(expr) => self.see_expr(symbols, expr),
            StmtKind::If(node) => self.see_if(symbols, &node.branches, &node.or_else),
            StmtKind::For(node) => self.see_expr(symbols, &node.iter),
            StmtKind::Set { target, value, .. } => {
                self.see_expr(symbols, value);
                self.see_target(symbols, target, false);
            }
            StmtKind::SetBlock(node) => self.see_target(symbols, &node.target, false),
            StmtKind::Macro(node) => self.store(symbols, &node.name),
            StmtKind::CallBlock(node) => self.see_expr(symbols, &node.call),
            StmtKind::FilterBlock { filter, .. } => self.see_expr(symbols, filter),
            StmtKind::With { targets, .. } => {
                targets.iter().for_each(|(_, value)| self.see_expr(symbols, value));
            }
            StmtKind::Autoescape { .. } | StmtKind::Block(_) => {}
            StmtKind::Extends(node) => self.see_expr(symbols, &node.template),
            StmtKind::Include(node) => self.see_expr(symbols, &node.template),
            StmtKind::Import(node) => {
                self.see_expr(symbols, &node.template);
                self.store(symbols, &node.target);
            }
            StmtKind::FromImport(node) => {
                self.see_expr(symbols, &node.template);
                node.names.iter().for_each(|(_, alias, _)| self.store(symbols, alias));
            }
            StmtKind::Recurse { .. } | StmtKind::Break | StmtKind::Continue => {}
        }
    }

    /// An `if` opens no scope, but a name that only some branches set starts from outside.
    pub(super) fn see_if(
        &mut self,
        symbols: &mut Symbols,
        branches: &[(u32, Expr, Vec<Stmt>)],
        or_else: &[Stmt],
    ) {
        let Some(((_, test, body), elifs)) = branches.split_first() else { return };
        self.see_expr(symbols, test);
        let mut taken = symbols.clone();
        self.see_body(&mut taken, body);
        let mut others = symbols.clone();
        for elif in elifs {
            self.see_if(&mut others, std::slice::from_ref(elif), &[]);
        }
        let mut otherwise = symbols.clone();
        self.see_body(&mut otherwise, or_else);
        self.merge(symbols, [taken, others, otherwise]);
    }

    pub(super) fn merge(&mut self, symbols: &mut Symbols, branches: [Symbols; 3]) {
        let mut counts: Vec<(SmolStr, usize)> = Vec::new();
        for branch in &branches {
            for name in branch.stores.iter().filter(|name| !symbols.stores.contains(name)) {
                match counts.iter_mut().find(|(own, _)| own == name) {
                    Some(entry) => entry.1 += 1,
                    None => counts.push((name.clone(), 1)),
                }
            }
        }
        for branch in branches {
            symbols.refs.extend(branch.refs);
            branch.loads.into_iter().for_each(|(slot, load)| symbols.set_load(slot, load));
            branch.stores.iter().for_each(|name| symbols.add_store(name));
        }
        for (name, count) in counts {
            if count == 3 {
                continue;
            }
            let Some((_, slot)) = self.find(symbols, &name) else { continue };
            let load = match self.find_in(symbols.parent, &name) {
                Some(outer) => Load::Alias(self.reach(symbols.func, outer)),
                None => Load::Resolve(name.clone()),
            };
            symbols.set_load(slot, load);
        }
    }
}
