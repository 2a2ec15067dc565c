//! The evaluator: walks the tree of a template and writes its output.
//!
//! One [`Interp`] serves one rendering. It owns what genuine Salt makes anew for each rendering too:
//! the globals (the loader changes `tpldir` in them), the templates loaded by name and the modules
//! made of them. What is costly, the compiled code, is shared through the [`Environment`].
//!
//! Deep recursion is safe on any stack: every [`HOP`] levels the walk goes on in a new thread with
//! a stack of its own, while the old one waits.

mod expr;
mod loops;
mod stmt;

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
    ast::{Capture, Code, Expr, Func, FuncKind, Load, Scope, Var},
    call::Args,
    error::{Class, Error, Spot, Subject, Within, type_error},
    linemap::LineMap,
    methods,
    objects::*,
    ops::recursion,
    slips,
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

    /// Returns a variable that nobody else shares, without a copy.
    #[inline]
    fn plain(&self, var: Var) -> Option<&Value> {
        match var {
            Var::Local(slot) => match &self.slots[slot as usize] {
                Slot::Plain(value) => value.as_ref(),
                Slot::Shared(_) => None,
            },
            Var::Captured(_) | Var::Unresolved => None,
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
    /// For the same reason: a context holds the macros made in it, and they hold it.
    contexts: Vec<std::sync::Weak<Context>>,
    buffer: Buffer,
    written: usize,
    fuel: u64,
    depth: u32,
    calls: u32,
    /// The context that is running, for functions that look into it.
    pub(crate) current: Option<Arc<Context>>,
    /// Memory for printing, used again and again.
    scratch: String,
}

impl Drop for Interp<'_> {
    fn drop(&mut self) {
        for cell in self.cells.drain(..) {
            if let Some(cell) = cell.upgrade() {
                let value = cell.lock().take();
                drop(value);
            }
        }
        for context in self.contexts.drain(..).filter_map(|context| context.upgrade()) {
            let vars = std::mem::take(&mut *context.vars.lock());
            drop(vars);
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
            contexts: Vec::new(),
            buffer: Buffer::default(),
            written: 0,
            fuel: env.limits.fuel,
            depth: 0,
            calls: 0,
            current: None,
            scratch: String::new(),
        }
    }

    /// Renders the outermost template.
    pub(crate) fn render(&mut self, template: &Arc<Template>) -> Result<(String, LineMap)> {
        let [bytes, entries] = &template.code.last;
        self.buffer = Buffer {
            text: String::with_capacity(bytes.load(Ordering::Relaxed)),
            map: Some(LineMap::with_capacity(entries.load(Ordering::Relaxed))),
        };
        let context = self.context(template, self.globals.clone());
        self.run_root(template, &context)?;
        let buffer = std::mem::take(&mut self.buffer);
        let map = buffer.map.unwrap_or_default();
        bytes.store(buffer.text.len().min(1 << 20), Ordering::Relaxed);
        entries.store(map.len().min(1 << 16), Ordering::Relaxed);
        Ok((buffer.text, map))
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
            map.made(text, template.file.as_ref(), line);
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

    /// Makes a context that is emptied when the rendering ends.
    fn context(&mut self, template: &Arc<Template>, parent: Arc<Vars>) -> Arc<Context> {
        let context = Context::new(template, parent);
        self.remember(&context);
        context
    }

    fn remember(&mut self, context: &Arc<Context>) {
        self.contexts.push(Arc::downgrade(context));
        if self.contexts.len() > 4096 && self.contexts.len().is_power_of_two() {
            self.contexts.retain(|context| context.strong_count() > 0);
        }
    }

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
        Self::enter_first(scope, frame);
        Self::enter_again(scope, frame);
    }

    /// Sets what stays the same for all rounds of a loop: nothing in it can change the context.
    fn enter_first(scope: &Scope, frame: &mut Frame) {
        for (slot, name) in &scope.fixed {
            let value = frame.context.get(name);
            frame.set(Var::Local(*slot), value);
        }
    }

    /// Sets what every round of a loop begins with anew.
    fn enter_again(scope: &Scope, frame: &mut Frame) {
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
            let text = format!(
                "macro {} takes no keyword argument {}",
                macro_name(),
                halite_value::str_repr(name)
            );
            let known = params.names.iter().map(SmolStr::as_str);
            return Err(type_error(text).about(Subject::Name(name.to_string()), known));
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
            let near = self.loader.names();
            return Err(Error::new(Class::TemplateNotFound, name)
                .about(Subject::Template(name.to_owned()), near.iter().map(String::as_str)));
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
        let context = self.context(template, self.globals.clone());
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
        let context = self.context(&template, seen);
        self.make_module(&template, &context)
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
                        .map(|lookup| {
                            // `salt.grains.get` and `salt['grains.get']`: modules are names too.
                            let mut names = lookup.0.keys();
                            let modules: std::collections::BTreeSet<String> = (names.iter())
                                .filter_map(|name| Some(name.split_once('.')?.0.to_owned()))
                                .collect();
                            names.extend(modules);
                            names
                        })
                        .or_else(|| {
                            let module = object.as_object::<Module>()?.exported.get()?;
                            Some(module.iter().map(|(name, _)| name.to_string()).collect())
                        })
                        .or_else(|| {
                            object.as_object::<Loop>()?;
                            Some(slips::LOOP.map(str::to_owned).into())
                        })
                        .unwrap_or_default(),
                    _ => Vec::new(),
                };
                let methods = key.as_str().map(|key| methods::like(object, key));
                let known = known.iter().map(String::as_str).chain(methods.unwrap_or_default());
                let subject = Subject::Key { of: type_repr(object), key: key.to_string() };
                let error = match object {
                    Value::Dict(_) if *key == *"has_key" => {
                        error.with_note("a dict is asked for a key with `key in dict`")
                    }
                    _ => error,
                };
                error.about(subject, known)
            }
            Missing::Export { module, name, .. } => {
                let module = module.as_object::<Module>();
                let exported = module.and_then(|module| module.exported.get()).cloned();
                let known = exported.unwrap_or_default();
                let known = known.iter().map(|(name, _)| name.as_str());
                error.about(Subject::Name(name.to_string()), known)
            }
            Missing::Hint(_) => error,
        }
    }
}
