//! The tree of a template.
//!
//! The parser makes it; the resolver ([`super::resolve`]) then fills in where each name lives and
//! moves the bodies of macros, blocks and recursive loops into [`Code::funcs`], because those run
//! on their own; the evaluator walks what is left. One tree for both, annotated in place, so that
//! nothing has to be copied.

use std::sync::{Arc, atomic::AtomicUsize};

use halite_value::{SmolStr, Value};

use super::{filters::FilterRef, tests::TestRef};

/// Where a variable lives while its function runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Var {
    #[default]
    Unresolved,
    /// A slot of the running function.
    Local(u32),
    /// A variable of an enclosing function.
    Captured(u32),
}

/// What a variable holds when its scope is entered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Load {
    /// It is set by whoever enters (an argument, a loop's item).
    Param,
    /// It is looked up in the context.
    Resolve(SmolStr),
    /// It starts as a copy of an outer variable.
    Alias(Var),
    Undefined,
}

/// The variables that a scope brings to life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) loads: Vec<(u32, Load)>,
    /// Taken from the context and never assigned here: a loop sets them once for all rounds.
    pub(crate) fixed: Vec<(u32, SmolStr)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    /// Levels of nesting below; bounded, so that walking the tree is safe.
    pub(crate) height: u16,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Const(Value),
    Name(SmolStr, Var),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Cond(Box<(Expr, Expr, Option<Expr>)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Pos(Box<Expr>),
    Bin(Op, Box<(Expr, Expr)>),
    Compare(Box<Expr>, Vec<(Cmp, Expr)>),
    Concat(Vec<Expr>),
    Attr(Box<Expr>, SmolStr),
    Item(Box<(Expr, Expr)>),
    Slice(Box<[Option<Expr>; 3]>),
    Call(Box<Expr>, Box<CallArgs>),
    Filter(Box<FilterCall>),
    Test(Box<TestCall>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CallArgs {
    pub(crate) pos: Vec<Expr>,
    pub(crate) kw: Vec<(SmolStr, Expr)>,
    pub(crate) star: Option<Expr>,
    pub(crate) star_star: Option<Expr>,
}

impl CallArgs {
    /// Tells whether there are positional arguments only.
    pub(crate) fn is_plain(&self) -> bool {
        self.kw.is_empty() && self.star.is_none() && self.star_star.is_none()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FilterCall {
    /// `None`: the output of the enclosing filter or set block.
    pub(crate) node: Option<Expr>,
    pub(crate) name: SmolStr,
    pub(crate) args: CallArgs,
    pub(crate) found: Option<FilterRef>,
}

#[derive(Clone, Debug)]
pub(crate) struct TestCall {
    pub(crate) node: Expr,
    pub(crate) name: SmolStr,
    pub(crate) args: CallArgs,
    pub(crate) found: Option<TestRef>,
}

/// What can stand on the left of `=`.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Name(SmolStr, Var),
    Tuple(Vec<Target>),
    /// An attribute of a namespace.
    Attr(SmolStr, Var, SmolStr),
}

impl Target {
    pub(crate) fn each_name(&self, f: &mut dyn FnMut(&SmolStr)) {
        match self {
            Self::Name(name, _) => f(name),
            Self::Tuple(items) => items.iter().for_each(|item| item.each_name(f)),
            Self::Attr(..) => {}
        }
    }
}

/// What becomes of the names that an assignment sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Export {
    #[default]
    No,
    /// Into the context, where includes, blocks and importers see them.
    Context(Vec<(SmolStr, Var)>),
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Text, the line of its first character, and its line breaks.
    Data(SmolStr, u32, u32),
    Expr(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    Output(Output),
    Do(Expr),
    If(Box<If>),
    For(Box<For>),
    /// A recursive loop: its `for` went into a function.
    Recurse {
        iter: Expr,
        func: usize,
    },
    Set {
        target: Target,
        value: Expr,
        export: Export,
    },
    SetBlock(Box<SetBlock>),
    Macro(Box<Macro>),
    CallBlock(Box<CallBlock>),
    FilterBlock {
        filter: Expr,
        body: Vec<Stmt>,
        scope: Scope,
    },
    With {
        targets: Vec<(Target, Expr)>,
        body: Vec<Stmt>,
        scope: Scope,
    },
    Autoescape {
        value: Expr,
        body: Vec<Stmt>,
        scope: Scope,
    },
    Block(Box<Block>),
    Extends(Extends),
    Include(Box<Include>),
    Import(Box<Import>),
    FromImport(Box<FromImport>),
    Break,
    Continue,
}

/// Whether text at this place is printed in a template that extends another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    #[default]
    Always,
    /// Only while no parent was found: an `extends` may have run before.
    NoParent,
    Never,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) when: When,
}

#[derive(Clone, Debug)]
pub(crate) struct If {
    /// Line, condition, body; the first is `if`, the others are `elif`.
    pub(crate) branches: Vec<(u32, Expr, Vec<Stmt>)>,
    pub(crate) or_else: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iter: Expr,
    pub(crate) test: Option<Expr>,
    pub(crate) recursive: bool,
    pub(crate) body: Vec<Stmt>,
    pub(crate) or_else: Vec<Stmt>,
    /// Set when the body uses `loop`.
    pub(crate) loop_var: Option<Var>,
    pub(crate) scope: Scope,
    pub(crate) else_scope: Scope,
    /// The function that decides which items are taken.
    pub(crate) test_func: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct SetBlock {
    pub(crate) target: Target,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) scope: Scope,
    pub(crate) export: Export,
    /// A `load_yaml` and its like: what they give is data, never text to be escaped.
    pub(crate) is_load: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    pub(crate) names: Vec<SmolStr>,
    /// For the last ones of `names`.
    pub(crate) defaults: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Macro {
    pub(crate) name: SmolStr,
    pub(crate) var: Var,
    pub(crate) signature: Signature,
    pub(crate) body: Vec<Stmt>,
    pub(crate) func: usize,
    pub(crate) exported: bool,
    pub(crate) toplevel: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CallBlock {
    pub(crate) call: Expr,
    pub(crate) signature: Signature,
    pub(crate) body: Vec<Stmt>,
    pub(crate) func: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: SmolStr,
    pub(crate) scoped: bool,
    pub(crate) required: bool,
    pub(crate) body: Vec<Stmt>,
    pub(crate) when: When,
    /// For a scoped block: the variables it sees.
    pub(crate) visible: Vec<(SmolStr, Var)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Extends {
    pub(crate) template: Expr,
    /// An `extends` before this one may have run, or has.
    pub(crate) after: When,
}

#[derive(Clone, Debug)]
pub(crate) struct Include {
    pub(crate) template: Expr,
    pub(crate) ignore_missing: bool,
    pub(crate) with_context: bool,
    pub(crate) visible: Vec<(SmolStr, Var)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) template: Expr,
    pub(crate) target: SmolStr,
    pub(crate) var: Var,
    pub(crate) with_context: bool,
    pub(crate) visible: Vec<(SmolStr, Var)>,
    pub(crate) toplevel: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FromImport {
    pub(crate) template: Expr,
    /// Name there, name here.
    pub(crate) names: Vec<(SmolStr, SmolStr, Var)>,
    pub(crate) with_context: bool,
    pub(crate) visible: Vec<(SmolStr, Var)>,
    pub(crate) toplevel: bool,
}

/// Where a function finds one of its captured variables when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    Local(u32),
    Captured(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FuncKind {
    Root,
    Block(SmolStr),
    Macro(SmolStr),
    /// The condition of a `for`, or the body of a recursive one.
    Loop,
}

/// A part of a template that runs on its own variables.
#[derive(Clone, Debug)]
pub(crate) struct Func {
    pub(crate) kind: FuncKind,
    pub(crate) line: u32,
    pub(crate) slots: u32,
    /// Slots that other functions capture.
    pub(crate) cells: Vec<u32>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) scope: Scope,
    pub(crate) body: Vec<Stmt>,
    pub(crate) params: Params,
    /// Of a block or the root: where `self` and `super` go.
    pub(crate) self_var: Option<u32>,
    pub(crate) super_var: Option<u32>,
    /// Of a condition: what is assigned, what is asked.
    pub(crate) test: Option<(Target, Expr)>,
    /// Of a recursive loop: the loop.
    pub(crate) loop_node: Option<Box<For>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    pub(crate) names: Vec<SmolStr>,
    pub(crate) slots: Vec<u32>,
    pub(crate) defaults: Vec<Expr>,
    pub(crate) caller: Option<u32>,
    pub(crate) kwargs: Option<u32>,
    pub(crate) varargs: Option<u32>,
    pub(crate) explicit_caller: bool,
    pub(crate) accesses_caller: bool,
}

/// A compiled template, without a name: the same text under two names is compiled once.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) funcs: Vec<Func>,
    pub(crate) blocks: Vec<(SmolStr, usize)>,
    pub(crate) source: Arc<str>,
    /// Bytes and line entries of the last output: so much room is made for the next.
    pub(crate) last: [AtomicUsize; 2],
}

impl Code {
    /// The function that a template starts with.
    pub(crate) const ROOT: usize = 0;
}

/// Calls `f` for every expression directly below.
pub(crate) fn each_child<'a>(expr: &'a Expr, f: &mut dyn FnMut(&'a Expr)) {
    match &expr.kind {
        Kind::Const(_) | Kind::Name(..) => {}
        Kind::Tuple(items) | Kind::List(items) | Kind::Concat(items) => items.iter().for_each(f),
        Kind::Dict(items) => items.iter().for_each(|(key, value)| {
            f(key);
            f(value);
        }),
        Kind::Cond(parts) => {
            let (test, yes, no) = &**parts;
            f(yes);
            f(test);
            no.iter().for_each(f);
        }
        Kind::And(pair) | Kind::Or(pair) | Kind::Bin(_, pair) | Kind::Item(pair) => {
            f(&pair.0);
            f(&pair.1);
        }
        Kind::Not(one) | Kind::Neg(one) | Kind::Pos(one) | Kind::Attr(one, _) => f(one),
        Kind::Compare(first, rest) => {
            f(first);
            rest.iter().for_each(|(_, expr)| f(expr));
        }
        Kind::Slice(parts) => parts.iter().flatten().for_each(f),
        Kind::Call(callee, args) => {
            f(callee);
            each_arg(args, f);
        }
        Kind::Filter(call) => {
            call.node.iter().for_each(&mut *f);
            each_arg(&call.args, f);
        }
        Kind::Test(call) => {
            f(&call.node);
            each_arg(&call.args, f);
        }
    }
}

fn each_arg<'a>(args: &'a CallArgs, f: &mut dyn FnMut(&'a Expr)) {
    args.pos.iter().for_each(&mut *f);
    args.kw.iter().for_each(|(_, expr)| f(expr));
    args.star.iter().for_each(&mut *f);
    args.star_star.iter().for_each(f);
}
