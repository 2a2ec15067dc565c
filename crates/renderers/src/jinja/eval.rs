//! The evaluator: walks the tree of a template and writes its output.
//!
//! One [`Interp`] serves one rendering. It owns what genuine Salt makes anew for each rendering too:
//! the globals (the loader changes `tpldir` in them), the templates loaded by name and the modules
//! made of them. What is costly, the compiled code, is shared through the [`Environment`].
//!
//! Deep recursion is safe on any stack: every [`HOP`] levels the walk goes on in a new thread with
//! a stack of its own, while the old one waits.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use halite_value::{Dict, SmolStr, Value};
use indexmap::IndexMap;
use parking_lot::Mutex;

use super::{
    Environment, Loader,
    ast::{
        Block, CallArgs, Capture, Cmp, Code, Export, Expr, Extends, For, FromImport, Func,
        FuncKind, Include, Kind, Load, Piece, Scope, SetBlock, Stmt, StmtKind, Target, Var, When,
    },
    call::Args,
    error::{Class, Error, Spot, Subject, Within, type_error, value_error},
    iter::{PyIter, Stream},
    linemap::LineMap,
    objects::*,
    ops::recursion,
};

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Variables by name.
pub(crate) type Vars = IndexMap<SmolStr, Value, foldhash::fast::RandomState>;

/// A variable that several functions share.
pub(crate) type CellRef = Arc<Mutex<Option<Value>>>;

/// Levels of evaluation per thread.
const HOP: u32 = 40;
const STACK: usize = 8 << 20;

/// A compiled template under a name.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) file: Option<Arc<str>>,
    pub(crate) code: Arc<Code>,
}

type Blocks = HashMap<SmolStr, Vec<(Arc<Template>, usize)>>;

/// What a template finds its free names in.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) name: Option<Arc<str>>,
    parent: Arc<Vars>,
    vars: Mutex<Vars>,
    exported: Mutex<Vec<SmolStr>>,
    blocks: Mutex<Blocks>,
    autoescape: AtomicBool,
}

impl Context {
    fn new(template: &Arc<Template>, parent: Arc<Vars>) -> Arc<Self> {
        let code = &template.code;
        let own = |(name, func): &(SmolStr, usize)| (name.clone(), vec![(template.clone(), *func)]);
        Arc::new(Self {
            name: template.name.clone(),
            parent,
            vars: Mutex::default(),
            exported: Mutex::default(),
            blocks: Mutex::new(code.blocks.iter().map(own).collect()),
            autoescape: AtomicBool::new(false),
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.vars.lock().get(name) {
            return Some(value.clone());
        }
        self.parent.get(name).cloned()
    }

    pub(crate) fn autoescape(&self) -> bool {
        self.autoescape.load(Ordering::Relaxed)
    }

    /// Returns everything that is visible here.
    pub(crate) fn all(&self) -> Arc<Vars> {
        let vars = self.vars.lock();
        if vars.is_empty() {
            return self.parent.clone();
        }
        let mut all = (*self.parent).clone();
        all.extend(vars.iter().map(|(name, value)| (name.clone(), value.clone())));
        Arc::new(all)
    }

    fn set(&self, name: &SmolStr, value: Value, export: bool) {
        self.vars.lock().insert(name.clone(), value);
        if export {
            let mut exported = self.exported.lock();
            if !exported.contains(name) {
                exported.push(name.clone());
            }
        }
    }

    fn unexport(&self, name: &str) {
        self.exported.lock().retain(|own| own != name);
    }

    fn exports(&self) -> Vec<(SmolStr, Value)> {
        let vars = self.vars.lock();
        self.exported
            .lock()
            .iter()
            .filter_map(|name| Some((name.clone(), vars.get(name)?.clone())))
            .collect()
    }

    /// Returns a context with more variables and the same blocks.
    fn derived(&self, more: Vec<(SmolStr, Value)>) -> Arc<Self> {
        Arc::new(Self {
            name: self.name.clone(),
            parent: with_more(self.all(), more),
            vars: Mutex::default(),
            exported: Mutex::default(),
            blocks: Mutex::new(self.blocks.lock().clone()),
            autoescape: AtomicBool::new(self.autoescape()),
        })
    }

    pub(crate) fn block(&self, name: &str, depth: usize) -> Option<(Arc<Template>, usize)> {
        self.blocks.lock().get(name)?.get(depth).cloned()
    }

    fn names(&self) -> Vec<SmolStr> {
        self.vars.lock().keys().chain(self.parent.keys()).cloned().collect()
    }
}

fn with_more(all: Arc<Vars>, more: Vec<(SmolStr, Value)>) -> Arc<Vars> {
    if more.is_empty() {
        return all;
    }
    let mut all = (*all).clone();
    all.extend(more);
    Arc::new(all)
}

enum Slot {
    Plain(Option<Value>),
    Shared(CellRef),
}

/// A running function.
pub(crate) struct Frame {
    pub(crate) template: Arc<Template>,
    pub(crate) context: Arc<Context>,
    func: usize,
    slots: Vec<Slot>,
    captured: Arc<[CellRef]>,
    pub(crate) line: u32,
    /// The template that this one extends, once known.
    parent: Option<Arc<Template>>,
}

impl Frame {
    fn get(&self, var: Var) -> Option<Value> {
        match var {
            Var::Local(slot) => match &self.slots[slot as usize] {
                Slot::Plain(value) => value.clone(),
                Slot::Shared(cell) => cell.lock().clone(),
            },
            Var::Captured(index) => self.captured[index as usize].lock().clone(),
            Var::Unresolved => None,
        }
    }

    fn set(&mut self, var: Var, value: Option<Value>) {
        match var {
            Var::Local(slot) => match &mut self.slots[slot as usize] {
                Slot::Plain(own) => *own = value,
                Slot::Shared(cell) => *cell.lock() = value,
            },
            Var::Captured(index) => *self.captured[index as usize].lock() = value,
            Var::Unresolved => {}
        }
    }

    fn spot(&self) -> Spot {
        let within = match &self.template.code.funcs[self.func].kind {
            FuncKind::Root => Within::Template,
            FuncKind::Block(name) => Within::Block(name.to_string()),
            FuncKind::Macro(name) => Within::Macro(name.to_string()),
            FuncKind::Loop => Within::Loop,
        };
        spot(&self.template, self.line, within)
    }
}

fn spot(template: &Template, line: u32, within: Within) -> Spot {
    Spot {
        template: template.name.clone(),
        file: template.file.clone(),
        line,
        within,
        source: template.code.source.clone(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Normal,
    Break,
    Continue,
}

/// Where output goes.
#[derive(Default)]
struct Buffer {
    text: String,
    /// Only the outermost buffer has one.
    map: Option<LineMap>,
}

/// One rendering.
pub(crate) struct Interp<'e> {
    pub(crate) env: &'e Environment,
    loader: &'e dyn Loader,
    pub(crate) globals: Arc<Vars>,
    templates: HashMap<SmolStr, Arc<Template>>,
    modules: HashMap<usize, Value>,
    /// Macros refer to variables that refer to macros: cut at the end, or they would stay forever.
    cells: Vec<std::sync::Weak<Mutex<Option<Value>>>>,
    buffer: Buffer,
    written: usize,
    fuel: u64,
    depth: u32,
    calls: u32,
    /// The context that is running, for functions that look into it.
    pub(crate) current: Option<Arc<Context>>,
}

impl Drop for Interp<'_> {
    fn drop(&mut self) {
        for cell in self.cells.drain(..) {
            if let Some(cell) = cell.upgrade() {
                let value = cell.lock().take();
                drop(value);
            }
        }
    }
}

impl<'e> Interp<'e> {
    pub(crate) fn new(env: &'e Environment, loader: &'e dyn Loader, globals: Arc<Vars>) -> Self {
        Self {
            env,
            loader,
            globals,
            templates: HashMap::new(),
            modules: HashMap::new(),
            cells: Vec::new(),
            buffer: Buffer::default(),
            written: 0,
            fuel: env.limits.fuel,
            depth: 0,
            calls: 0,
            current: None,
        }
    }

    /// Renders the outermost template.
    pub(crate) fn render(&mut self, template: &Arc<Template>) -> Result<(String, LineMap)> {
        self.buffer = Buffer { text: String::new(), map: Some(LineMap::default()) };
        let context = Context::new(template, self.globals.clone());
        self.run_root(template, &context)?;
        let buffer = std::mem::take(&mut self.buffer);
        Ok((buffer.text, buffer.map.unwrap_or_default()))
    }

    pub(crate) fn strict(&self) -> bool {
        self.env.strict
    }

    // ---- limits

    #[inline]
    pub(crate) fn step(&mut self) -> Result<()> {
        self.burn(1)
    }

    #[inline]
    pub(crate) fn burn(&mut self, amount: usize) -> Result<()> {
        match self.fuel.checked_sub(amount as u64) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => {
                self.fuel = 0;
                Err(Error::new(
                    Class::RuntimeError,
                    "the template takes too long: its fuel is used up",
                ))
            }
        }
    }

    /// Checks that something of this many bytes may be made.
    pub(crate) fn room(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.env.limits.object_bytes {
            return Err(Error::new(Class::MemoryError, "the template makes something too large"));
        }
        self.burn(bytes / 64)
    }

    /// Runs something one level deeper; on a new stack when this one may get full.
    #[inline]
    fn deeper<T: Send>(&mut self, run: impl FnOnce(&mut Self) -> Result<T> + Send) -> Result<T> {
        self.depth += 1;
        let result = if self.depth.is_multiple_of(HOP) { self.hop(run) } else { run(self) };
        self.depth -= 1;
        result
    }

    #[cold]
    fn hop<T: Send>(&mut self, run: impl FnOnce(&mut Self) -> Result<T> + Send) -> Result<T> {
        if self.depth > self.env.limits.depth {
            return Err(recursion("in a template"));
        }
        std::thread::scope(|scope| {
            let spawned =
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || run(self));
            match spawned.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => Err(recursion("in a template (no thread)")),
            }
        })
    }

    // ---- output

    fn write(&mut self, text: &str, template: &Arc<Template>, line: u32) -> Result<()> {
        self.written += text.len();
        if self.written > self.env.limits.output_bytes {
            return Err(Error::new(Class::MemoryError, "the template writes too much"));
        }
        if let Some(map) = &mut self.buffer.map {
            map.add(text, template.file.as_ref(), line, false);
        }
        self.buffer.text.push_str(text);
        Ok(())
    }

    /// Runs something and returns what it wrote.
    fn capture(&mut self, run: impl FnOnce(&mut Self) -> Result<Flow>) -> Result<(String, Flow)> {
        let outer = std::mem::take(&mut self.buffer);
        let result = run(self);
        let inner = std::mem::replace(&mut self.buffer, outer);
        Ok((inner.text, result?))
    }

    // ---- functions

    fn frame(
        &mut self,
        template: &Arc<Template>,
        func: usize,
        context: &Arc<Context>,
        captured: Arc<[CellRef]>,
    ) -> Frame {
        let code = &template.code.funcs[func];
        let mut slots: Vec<Slot> = (0..code.slots).map(|_| Slot::Plain(None)).collect();
        for slot in &code.cells {
            let cell = CellRef::default();
            self.cells.push(Arc::downgrade(&cell));
            slots[*slot as usize] = Slot::Shared(cell);
        }
        if self.cells.len() > 4096 && self.cells.len().is_power_of_two() {
            self.cells.retain(|cell| cell.strong_count() > 0);
        }
        Frame {
            template: template.clone(),
            context: context.clone(),
            func,
            slots,
            captured,
            line: code.line,
            parent: None,
        }
    }

    fn enter(&mut self, scope: &Scope, frame: &mut Frame) {
        for (slot, load) in &scope.loads {
            let value = match load {
                Load::Param => continue,
                Load::Undefined => None,
                Load::Alias(var) => frame.get(*var),
                Load::Resolve(name) => frame.context.get(name),
            };
            frame.set(Var::Local(*slot), value);
        }
    }

    /// Collects the variables that a nested function needs.
    fn close_over(&mut self, func: usize, frame: &Frame) -> Arc<[CellRef]> {
        let captures = &frame.template.code.funcs[func].captures;
        captures
            .iter()
            .map(|capture| match capture {
                Capture::Captured(index) => frame.captured[*index as usize].clone(),
                Capture::Local(slot) => match &frame.slots[*slot as usize] {
                    Slot::Shared(cell) => cell.clone(),
                    Slot::Plain(value) => Arc::new(Mutex::new(value.clone())),
                },
            })
            .collect()
    }

    /// Runs the body of a function whose arguments are set.
    fn run(&mut self, frame: &mut Frame) -> Result<()> {
        let template = frame.template.clone();
        let func = &template.code.funcs[frame.func];
        self.enter(&func.scope, frame);
        let outer = self.current.replace(frame.context.clone());
        let result = self.body(&func.body, frame);
        self.current = outer;
        result.map(|_| ()).map_err(|error| error.at(frame.spot()))
    }

    fn run_root(&mut self, template: &Arc<Template>, context: &Arc<Context>) -> Result<()> {
        let mut frame = self.frame(template, Code::ROOT, context, Arc::default());
        if let Some(slot) = template.code.funcs[Code::ROOT].self_var {
            let own = object(TemplateReference(context.clone()));
            frame.set(Var::Local(slot), Some(own));
        }
        self.deeper(|interp| {
            interp.run(&mut frame)?;
            match frame.parent.take() {
                Some(parent) => {
                    interp.run_root(&parent, context).map_err(|error| error.at(frame.spot()))
                }
                None => Ok(()),
            }
        })
    }

    pub(crate) fn run_block(
        &mut self,
        name: &SmolStr,
        depth: usize,
        context: &Arc<Context>,
    ) -> Result<()> {
        let Some((template, func)) = context.block(name, depth) else { return Ok(()) };
        let mut frame = self.frame(&template, func, context, Arc::default());
        let code = &template.code.funcs[func];
        if let Some(slot) = code.self_var {
            frame.set(Var::Local(slot), Some(object(TemplateReference(context.clone()))));
        }
        if let Some(slot) = code.super_var {
            let above = self.super_of(name, depth + 1, context);
            frame.set(Var::Local(slot), Some(above));
        }
        self.deeper(|interp| interp.run(&mut frame))
    }

    pub(crate) fn super_of(
        &mut self,
        name: &SmolStr,
        depth: usize,
        context: &Arc<Context>,
    ) -> Value {
        match context.block(name, depth) {
            Some(_) => {
                object(BlockReference { name: name.clone(), context: context.clone(), depth })
            }
            None => {
                let hint =
                    format!("there is no parent block called {}.", halite_value::str_repr(name));
                Undefined::value(self.strict(), Missing::Hint(hint))
            }
        }
    }

    /// Runs a block and returns what it writes.
    pub(crate) fn call_block(&mut self, block: &BlockReference) -> Result<Value> {
        let (text, _) = self.capture(|interp| {
            interp.run_block(&block.name, block.depth, &block.context)?;
            Ok(Flow::Normal)
        })?;
        Ok(if block.context.autoescape() { markup(text) } else { Value::from(text) })
    }

    pub(crate) fn call_macro(&mut self, own: &Macro, mut args: Args) -> Result<Value> {
        if self.calls >= self.env.limits.calls {
            return Err(recursion("while calling a Python object"));
        }
        let code = own.template.code.clone();
        let func = &code.funcs[own.func];
        let params = &func.params;
        let mut frame = self.frame(&own.template, own.func, &own.context, own.captured.clone());
        let mut given = std::mem::take(&mut args.positional).into_iter();
        let mut found_caller = params.explicit_caller;
        let mut all_positional = true;
        for (name, slot) in params.names.iter().zip(&params.slots) {
            let value = match given.next() {
                Some(value) => Some(value),
                None => {
                    if all_positional {
                        all_positional = false;
                        found_caller = false;
                    }
                    found_caller |= name == "caller";
                    args.take_keyword(name)
                }
            };
            frame.set(Var::Local(*slot), value);
        }
        let rest: Vec<Value> = given.collect();
        if params.accesses_caller && !found_caller {
            let caller = args.take_keyword("caller").filter(|caller| !caller.is_null());
            let caller = caller.unwrap_or_else(|| {
                Undefined::value(self.strict(), Missing::Hint("No caller defined".into()))
            });
            if let Some(slot) = params.caller {
                frame.set(Var::Local(slot), Some(caller));
            }
        }
        let macro_name =
            || own.name.as_ref().map_or("None".to_owned(), |name| halite_value::str_repr(name));
        if let Some(slot) = params.kwargs {
            let kwargs: Dict = args.keyword.drain(..).collect();
            frame.set(Var::Local(slot), Some(Value::Dict(kwargs)));
        } else if let Some((name, _)) = args.keyword.first() {
            if args.keyword.iter().any(|(name, _)| name == "caller") {
                return Err(type_error(format!(
                    "macro {} was invoked with two values for the special caller argument. This is \
                     most likely a bug.",
                    macro_name()
                )));
            }
            let name = halite_value::str_repr(name);
            return Err(type_error(format!(
                "macro {} takes no keyword argument {name}",
                macro_name()
            )));
        }
        if let Some(slot) = params.varargs {
            let rest = self.tuple(rest)?;
            frame.set(Var::Local(slot), Some(rest));
        } else if !rest.is_empty() {
            let count = params.names.len();
            return Err(type_error(format!(
                "macro {} takes not more than {count} argument(s)",
                macro_name()
            )));
        }
        self.calls += 1;
        let text = self.capture(|interp| {
            interp
                .deeper(|interp| {
                    interp.defaults(func, &mut frame)?;
                    interp.run(&mut frame)
                })
                .map(|()| Flow::Normal)
        });
        self.calls -= 1;
        let (text, _) = text?;
        Ok(if own.autoescape { markup(text) } else { Value::from(text) })
    }

    fn defaults(&mut self, func: &Func, frame: &mut Frame) -> Result<()> {
        let params = &func.params;
        if (params.slots.iter()).all(|slot| frame.get(Var::Local(*slot)).is_some()) {
            return Ok(());
        }
        self.enter(&func.scope, frame);
        let first_default = params.names.len() - params.defaults.len();
        for (index, (name, slot)) in params.names.iter().zip(&params.slots).enumerate() {
            if frame.get(Var::Local(*slot)).is_some() {
                continue;
            }
            let value =
                match index.checked_sub(first_default).and_then(|at| params.defaults.get(at)) {
                    Some(default) => {
                        self.eval(default, frame).map_err(|error| error.at(frame.spot()))?
                    }
                    None => {
                        let name = halite_value::str_repr(name);
                        let hint = format!("parameter {name} was not provided");
                        Undefined::value(self.strict(), Missing::Hint(hint))
                    }
                };
            frame.set(Var::Local(*slot), Some(value));
        }
        Ok(())
    }

    // ---- templates by name

    pub(crate) fn load(&mut self, name: &str) -> Result<Arc<Template>> {
        if let Some(template) = self.templates.get(name) {
            return Ok(template.clone());
        }
        let mut globals = super::Globals { vars: self.globals.clone() };
        let loaded = self.loader.load(name, &mut globals);
        self.globals = globals.vars;
        let Some(source) = loaded? else {
            return Err(Error::new(Class::TemplateNotFound, name)
                .about(Subject::Template(name.to_owned()), []));
        };
        let code = self.env.compile(&source.text).map_err(|error| {
            let line = error.syntax_line().unwrap_or(1);
            error.at(Spot {
                template: Some(name.into()),
                file: source.file.clone(),
                line,
                within: Within::Template,
                source: source.text.clone(),
            })
        })?;
        let template = Arc::new(Template { name: Some(name.into()), file: source.file, code });
        self.templates.insert(name.into(), template.clone());
        Ok(template)
    }

    /// Finds the template that an expression of `include`, `import` or `extends` names.
    fn find_template(
        &mut self,
        expr: &Expr,
        frame: &mut Frame,
        many: bool,
    ) -> Result<Arc<Template>> {
        let named = self.eval(expr, frame)?;
        if let Some(undefined) = undefined(&named) {
            return Err(self.undefined_error(undefined));
        }
        if let Some(name) = text_of(&named) {
            return self.load(name);
        }
        if !many || !matches!(named, Value::List(_) | Value::Tuple(_) | Value::Object(_)) {
            return Err(type_error(format!("'{}' object is not iterable", named.type_name())));
        }
        let names = self.collect(&named)?;
        if names.is_empty() {
            return Err(Error::new(
                Class::TemplatesNotFound,
                "Tried to select from an empty list of templates.",
            ));
        }
        let mut missing = Vec::new();
        for name in &names {
            if let Some(undefined) = undefined(name) {
                return Err(self.undefined_error(undefined));
            }
            let name = self.str_of(name)?;
            match self.load(&name) {
                Err(error) if *error.class() == Class::TemplateNotFound => missing.push(name),
                other => return other,
            }
        }
        let missing: Vec<&str> = missing.iter().map(SmolStr::as_str).collect();
        Err(Error::new(
            Class::TemplatesNotFound,
            format!("none of the templates given were found: {}", missing.join(", ")),
        ))
    }

    fn visible(&self, names: &[(SmolStr, Var)], frame: &Frame) -> Vec<(SmolStr, Value)> {
        names.iter().filter_map(|(name, var)| Some((name.clone(), frame.get(*var)?))).collect()
    }

    fn make_module(&mut self, template: &Arc<Template>, context: &Arc<Context>) -> Result<Value> {
        let (body, _) = self.capture(|interp| {
            interp.run_root(template, context)?;
            Ok(Flow::Normal)
        })?;
        let module =
            Module { name: template.name.clone(), body: body.into(), exported: Default::default() };
        let _ = module.exported.set(context.exports());
        Ok(object(module))
    }

    /// Returns the module of a template that does not see its importer: made once.
    fn default_module(&mut self, template: &Arc<Template>) -> Result<Value> {
        let key = Arc::as_ptr(template).addr();
        if let Some(module) = self.modules.get(&key) {
            return Ok(module.clone());
        }
        let context = Context::new(template, self.globals.clone());
        let module = self.make_module(template, &context)?;
        self.modules.insert(key, module.clone());
        Ok(module)
    }

    fn import(
        &mut self,
        expr: &Expr,
        with_context: bool,
        visible: &[(SmolStr, Var)],
        frame: &mut Frame,
    ) -> Result<Value> {
        let template = self.find_template(expr, frame, false)?;
        if !with_context {
            return self.default_module(&template);
        }
        let seen = with_more(frame.context.all(), self.visible(visible, frame));
        let context = Context::new(&template, seen);
        self.make_module(&template, &context)
    }

    // ---- statements

    fn body(&mut self, body: &[Stmt], frame: &mut Frame) -> Result<Flow> {
        for stmt in body {
            let flow = self.stmt(stmt, frame)?;
            if flow != Flow::Normal {
                return Ok(flow);
            }
        }
        Ok(Flow::Normal)
    }

    fn scoped(&mut self, body: &[Stmt], scope: &Scope, frame: &mut Frame) -> Result<Flow> {
        self.enter(scope, frame);
        self.deeper(|interp| interp.body(body, frame))
    }

    fn printed(when: When, frame: &Frame) -> bool {
        match when {
            When::Always => true,
            When::NoParent => frame.parent.is_none(),
            When::Never => false,
        }
    }

    fn stmt(&mut self, stmt: &Stmt, frame: &mut Frame) -> Result<Flow> {
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
                    let test = self.eval(test, frame)?;
                    if self.truthy(&test)? {
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
                self.from_import(node, stmt.line, frame)?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Normal)
    }

    fn output(&mut self, pieces: &[Piece], frame: &mut Frame) -> Result<()> {
        for piece in pieces {
            match piece {
                Piece::Data(text, line) => {
                    self.written += text.len();
                    if let Some(map) = &mut self.buffer.map {
                        map.add(text, frame.template.file.as_ref(), *line, true);
                    }
                    self.buffer.text.push_str(text);
                }
                Piece::Expr(expr) => {
                    frame.line = expr.line;
                    let value = self.eval(expr, frame)?;
                    self.print(&value, frame, expr.line)?;
                }
            }
        }
        if self.written > self.env.limits.output_bytes {
            return Err(Error::new(Class::MemoryError, "the template writes too much"));
        }
        Ok(())
    }

    /// Writes a value as `{{ … }}` does.
    fn print(&mut self, value: &Value, frame: &Frame, line: u32) -> Result<()> {
        let autoescape = frame.context.autoescape();
        if !autoescape && let Value::Str(text) = value {
            return self.write(text, &frame.template, line);
        }
        let mut out = String::new();
        self.finalize(value, &mut out)?;
        if autoescape && !is_markup(value) {
            out = super::filters::text::escape_html(&out);
        }
        self.write(&out, &frame.template, line)
    }

    fn check_namespaces(&mut self, target: &Target, frame: &Frame) -> Result<()> {
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

    fn assign(&mut self, target: &Target, value: Value, frame: &mut Frame) -> Result<()> {
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

    fn unpack(&mut self, value: &Value, count: usize) -> Result<Vec<Value>> {
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

    fn export(&mut self, export: &Export, frame: &Frame) {
        if let Export::Context(names) = export {
            for (name, var) in names {
                if let Some(value) = frame.get(*var) {
                    frame.context.set(name, value, !name.starts_with('_'));
                }
            }
        }
    }

    fn set_block(&mut self, node: &SetBlock, line: u32, frame: &mut Frame) -> Result<Flow> {
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

    fn make_macro(&mut self, name: Option<SmolStr>, func: usize, frame: &Frame) -> Value {
        object(Macro {
            name,
            template: frame.template.clone(),
            func,
            captured: self.close_over(func, frame),
            context: frame.context.clone(),
            autoescape: frame.context.autoescape(),
        })
    }

    fn block(&mut self, node: &Block, frame: &mut Frame) -> Result<()> {
        let context = if node.scoped {
            frame.context.derived(self.visible(&node.visible, frame))
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

    fn extends(&mut self, node: &Extends, frame: &mut Frame) -> Result<()> {
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

    fn include(&mut self, node: &Include, line: u32, frame: &mut Frame) -> Result<()> {
        let template = match self.find_template(&node.template, frame, true) {
            Err(error) if node.ignore_missing && error.is_not_found() && !error.has_spots() => {
                return Ok(());
            }
            other => other?,
        };
        if node.with_context {
            let seen = with_more(frame.context.all(), self.visible(&node.visible, frame));
            let context = Context::new(&template, seen);
            return self.run_root(&template, &context);
        }
        let module = self.default_module(&template)?;
        let text =
            module.as_object::<Module>().map(|module| module.body.clone()).unwrap_or_default();
        self.write(&text, &frame.template, line)
    }

    fn from_import(&mut self, node: &FromImport, line: u32, frame: &mut Frame) -> Result<()> {
        let module = self.import(&node.template, node.with_context, &node.visible, frame)?;
        let Some(module) = module.as_object::<Module>() else { return Ok(()) };
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
                Undefined::value(self.strict(), Missing::Hint(hint))
            });
            if node.toplevel {
                frame.context.set(alias, value.clone(), false);
                frame.context.unexport(alias);
            }
            frame.set(*var, Some(value));
        }
        Ok(())
    }

    // ---- loops

    fn for_loop(
        &mut self,
        node: &For,
        line: u32,
        iterable: &Value,
        frame: &mut Frame,
        depth0: i64,
        recurse: Option<&Arc<LoopBody>>,
    ) -> Result<()> {
        let mut iter = self.iter(iterable)?;
        let mut sized = iterable.clone();
        if let Some(func) = node.test_func {
            iter = self.loop_test(func, iter, frame);
            sized = Value::Null;
        }
        let mut any = false;
        let state = node.loop_var.map(|var| {
            let own = Arc::new(Loop {
                state: Mutex::new(LoopState {
                    iterable: sized,
                    iter: None,
                    index0: -1,
                    length: None,
                    after: None,
                    current: None,
                    before: None,
                    changed: None,
                }),
                depth0,
                recurse: recurse.cloned(),
            });
            (var, own)
        });
        if let Some((_, own)) = &state {
            own.state.lock().iter = Some(std::mem::replace(&mut iter, PyIter::empty()));
        }
        loop {
            frame.line = line;
            let item = match &state {
                Some((_, own)) => self.loop_next(own)?,
                None => self.next(&mut iter)?,
            };
            let Some(item) = item else { break };
            any = true;
            match &node.target {
                Target::Name(_, var) => frame.set(*var, Some(item)),
                target => self.assign(target, item, frame)?,
            }
            if let Some((var, own)) = &state {
                frame.set(*var, Some(Value::Object(own.clone())));
            }
            if self.scoped(&node.body, &node.scope, frame)? == Flow::Break {
                break;
            }
        }
        if !any && !node.or_else.is_empty() {
            self.scoped(&node.or_else, &node.else_scope, frame)?;
        }
        Ok(())
    }

    fn loop_next(&mut self, own: &Loop) -> Result<Option<Value>> {
        let mut state = own.state.lock();
        let item = match state.after.take() {
            Some(after) => Some(after),
            None => {
                let Some(mut iter) = state.iter.take() else { return Ok(None) };
                drop(state);
                let item = self.next(&mut iter);
                state = own.state.lock();
                state.iter = Some(iter);
                item?
            }
        };
        if let Some(item) = &item {
            state.index0 += 1;
            state.before = state.current.replace(item.clone());
        }
        Ok(item)
    }

    fn loop_peek(&mut self, own: &Loop) -> Result<Option<Value>> {
        let mut state = own.state.lock();
        if state.after.is_none() {
            let Some(mut iter) = state.iter.take() else { return Ok(None) };
            drop(state);
            let item = self.next(&mut iter);
            state = own.state.lock();
            state.iter = Some(iter);
            state.after = item?;
        }
        Ok(state.after.clone())
    }

    pub(crate) fn loop_length(&mut self, own: &Loop) -> Result<i64> {
        let (known, iterable) = {
            let state = own.state.lock();
            (state.length, state.iterable.clone())
        };
        if let Some(length) = known {
            return Ok(length);
        }
        let length = match self.length(&iterable)? {
            Some(length) => length as i64,
            None => {
                let Some(iter) = own.state.lock().iter.take() else { return Ok(0) };
                let rest = self.collect_iter(iter)?;
                let mut state = own.state.lock();
                let length =
                    rest.len() as i64 + state.index0 + 1 + i64::from(state.after.is_some());
                state.iter = Some(PyIter::Vec(rest.into_iter()));
                length
            }
        };
        own.state.lock().length = Some(length);
        Ok(length)
    }

    pub(crate) fn loop_attribute(&mut self, own: &Loop, name: &str) -> Result<Option<Value>> {
        let index0 = own.state.lock().index0;
        Ok(Some(match name {
            "index" => Value::Int(index0 + 1),
            "index0" => Value::Int(index0),
            "first" => Value::Bool(index0 == 0),
            "last" => Value::Bool(self.loop_peek(own)?.is_none()),
            "length" => Value::Int(self.loop_length(own)?),
            "revindex" => Value::Int(self.loop_length(own)? - index0),
            "revindex0" => Value::Int(self.loop_length(own)? - index0 - 1),
            "depth" => Value::Int(own.depth0 + 1),
            "depth0" => Value::Int(own.depth0),
            "previtem" => {
                let before = own.state.lock().before.clone();
                before.filter(|_| index0 > 0).unwrap_or_else(|| {
                    Undefined::value(
                        self.strict(),
                        Missing::Hint("there is no previous item".into()),
                    )
                })
            }
            "nextitem" => self.loop_peek(own)?.unwrap_or_else(|| {
                Undefined::value(self.strict(), Missing::Hint("there is no next item".into()))
            }),
            _ => return Ok(None),
        }))
    }

    pub(crate) fn loop_method(&mut self, own: &Loop, name: &str, args: Args) -> Result<Value> {
        match name {
            "cycle" if args.positional.is_empty() => Err(type_error("no items for cycling given")),
            "cycle" => {
                let index = own.state.lock().index0.max(0) as usize;
                Ok(args.positional[index % args.positional.len()].clone())
            }
            _ => {
                let before = own.state.lock().changed.clone();
                let same = match before {
                    Some(before) => {
                        self.eq(&Value::tuple(before), &Value::tuple(args.positional.clone()))?
                    }
                    None => false,
                };
                if !same {
                    own.state.lock().changed = Some(args.positional);
                }
                Ok(Value::Bool(!same))
            }
        }
    }

    /// Calls `loop(…)`: the body of a recursive loop for other items.
    pub(crate) fn call_loop(&mut self, own: &Loop, mut args: Args) -> Result<Value> {
        let Some(body) = own.recurse.clone() else {
            return Err(type_error(
                "The loop must have the 'recursive' marker to be called recursively.",
            ));
        };
        if args.positional.is_empty() {
            return Err(type_error(
                "LoopContext.__call__() missing 1 required positional argument: 'iterable'",
            ));
        }
        let iterable = args.positional.swap_remove(0);
        let text = self.recurse(&body, &iterable, own.depth0 + 1)?;
        Ok(if body.context.autoescape() { markup(text) } else { Value::from(text) })
    }

    fn recurse(&mut self, body: &Arc<LoopBody>, iterable: &Value, depth0: i64) -> Result<String> {
        if self.calls >= self.env.limits.calls {
            return Err(recursion("while calling a Python object"));
        }
        let template = body.template.clone();
        let func = &template.code.funcs[body.func];
        let Some(node) = &func.loop_node else { return Ok(String::new()) };
        let mut frame = self.frame(&template, body.func, &body.context, body.captured.clone());
        self.calls += 1;
        let result = self.capture(|interp| {
            interp.deeper(|interp| {
                interp
                    .for_loop(node, func.line, iterable, &mut frame, depth0, Some(body))
                    .map_err(|error| error.at(frame.spot()))
            })?;
            Ok(Flow::Normal)
        });
        self.calls -= 1;
        Ok(result?.0)
    }

    /// Makes an iterator of the items that a loop's condition lets pass.
    fn loop_test(&mut self, func: usize, iter: PyIter, frame: &Frame) -> PyIter {
        let captured = self.close_over(func, frame);
        let mut inner = self.frame(&frame.template, func, &frame.context, captured);
        let template = inner.template.clone();
        self.enter(&template.code.funcs[func].scope, &mut inner);
        PyIter::Stream(Box::new(LoopTest { frame: inner, iter }))
    }

    pub(crate) fn explain(&self, error: Error, undefined: &Undefined) -> Error {
        match &undefined.what {
            Missing::Name(name) => {
                let known =
                    self.current.as_ref().map(|context| context.names()).unwrap_or_default();
                error.about(Subject::Name(name.to_string()), known.iter().map(SmolStr::as_str))
            }
            Missing::Of(object, key) => {
                let known: Vec<String> = match object {
                    Value::Dict(dict) => dict.keys().iter().map(ToString::to_string).collect(),
                    Value::Object(_) => object
                        .as_object::<HostLookup>()
                        .map(|lookup| lookup.0.keys())
                        .or_else(|| {
                            let module = object.as_object::<Module>()?.exported.get()?;
                            Some(module.iter().map(|(name, _)| name.to_string()).collect())
                        })
                        .unwrap_or_default(),
                    _ => Vec::new(),
                };
                let subject = Subject::Key { of: type_repr(object), key: key.to_string() };
                error.about(subject, known.iter().map(String::as_str))
            }
            Missing::Hint(_) => error,
        }
    }
}

struct LoopTest {
    frame: Frame,
    iter: PyIter,
}

impl Stream for LoopTest {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        let template = self.frame.template.clone();
        let func = &template.code.funcs[self.frame.func];
        let Some((target, test)) = &func.test else { return Ok(None) };
        while let Some(item) = interp.next(&mut self.iter)? {
            self.frame.line = test.line;
            let taken = interp.assign(target, item.clone(), &mut self.frame).and_then(|()| {
                let test = interp.eval(test, &mut self.frame)?;
                interp.truthy(&test)
            });
            if taken.map_err(|error| error.at(self.frame.spot()))? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

// ---- expressions

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

    fn eval_inner(&mut self, expr: &Expr, frame: &mut Frame) -> Result<Value> {
        match &expr.kind {
            Kind::Attr(..) => self.deeper(|interp| interp.eval(expr, frame)),
            _ => self.eval(expr, frame),
        }
    }

    fn eval_large(&mut self, expr: &Expr, frame: &mut Frame) -> Result<Value> {
        match &expr.kind {
            Kind::Filter(_) => self.eval_filter(expr, frame, None),
            Kind::Call(callee, args) => self.call_expr(callee, args, None, frame),
            Kind::Item(pair) => {
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

    fn eval_all(&mut self, items: &[Expr], frame: &mut Frame) -> Result<Vec<Value>> {
        items.iter().map(|item| self.eval(item, frame)).collect()
    }

    fn slice_parts(&mut self, parts: &[Option<Expr>; 3], frame: &mut Frame) -> Result<[Value; 3]> {
        let mut values = [Value::Null, Value::Null, Value::Null];
        for (value, part) in values.iter_mut().zip(parts) {
            if let Some(part) = part {
                *value = self.eval(part, frame)?;
            }
        }
        Ok(values)
    }

    fn eval_compare(
        &mut self,
        first: &Expr,
        rest: &[(Cmp, Expr)],
        frame: &mut Frame,
    ) -> Result<Value> {
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

    fn eval_concat(&mut self, parts: &[Expr], frame: &mut Frame) -> Result<Value> {
        let parts = self.eval_all(parts, frame)?;
        let escaping = frame.context.autoescape() && parts.iter().any(is_markup);
        let mut out = String::new();
        for part in &parts {
            if escaping {
                let text = super::filters::text::escape(self, part)?;
                out.push_str(&text);
            } else if let Value::Int(int) = part {
                super::ops::push_int(&mut out, *int);
            } else {
                let text = self.str_of(part)?;
                out.push_str(&text);
            }
        }
        self.room(out.len())?;
        Ok(if escaping { markup(out) } else { Value::from(out) })
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
                return Err(type_error(format!("argument after ** must be a mapping, not {name}")));
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

    fn call_expr(
        &mut self,
        callee: &Expr,
        args: &CallArgs,
        caller: Option<Value>,
        frame: &mut Frame,
    ) -> Result<Value> {
        // A method is called without making an object of it first.
        if let Kind::Attr(object, name) = &callee.kind {
            let object = self.eval(object, frame)?;
            if super::methods::has(&object, name) {
                let mut args = self.eval_args(args, frame)?;
                args.keyword.extend(caller.map(|caller| ("caller".into(), caller)));
                return super::methods::call(self, &object, name, args);
            }
            let callee = self.attribute(&object, name)?;
            return self.call_evaluated(&callee, args, caller, frame);
        }
        let callee = self.eval(callee, frame)?;
        self.call_evaluated(&callee, args, caller, frame)
    }

    fn call_evaluated(
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
                return super::methods::call(self, &own.object, &own.name, args);
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

    fn eval_filter(
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
            .about(
                Subject::Filter(call.name.to_string()),
                super::resolve::Names::filter_names(self.env),
            ));
        };
        let mut args = self.eval_args(&call.args, frame)?;
        args.positional.insert(0, value);
        self.apply_filter(found, args)
    }

    fn eval_test(&mut self, expr: &Expr, frame: &mut Frame) -> Result<bool> {
        let Kind::Test(call) = &expr.kind else { return Ok(false) };
        let value = self.eval(&call.node, frame)?;
        let Some(found) = &call.found else {
            let name = halite_value::str_repr(&call.name);
            return Err(Error::new(
                Class::TemplateRuntimeError,
                format!("No test named {name} found."),
            )
            .about(
                Subject::Test(call.name.to_string()),
                super::resolve::Names::test_names(self.env),
            ));
        };
        let mut args = self.eval_args(&call.args, frame)?;
        args.positional.insert(0, value);
        self.apply_test(found, args)
    }
}
