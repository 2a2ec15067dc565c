//! Things that exist only while a template runs.
//!
//! They travel inside [`Value::Object`] and are found again by downcast. Each prints as Python
//! prints its counterpart.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

pub(crate) use halite_value::set::Set;
use halite_value::{Dict, Key, Map, Object, SmolStr, Value, str_repr};
use parking_lot::Mutex;

use super::{
    call::Args,
    error::{Class, Error},
    eval::{CellRef, Context, Template},
    iter::PyIter,
};

macro_rules! object {
    (|$own:ident| $name:expr) => {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn type_name(&self) -> &str {
            let $own = self;
            $name
        }
    };
    ($name:expr) => {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn type_name(&self) -> &str {
            $name
        }
    };
}

pub(crate) fn object<T: Object>(object: T) -> Value {
    Value::Object(Arc::new(object))
}

/// A value that is not there. Most uses of it are errors; a strict one bears only `is defined`.
#[derive(Debug)]
pub(crate) struct Undefined {
    pub(crate) strict: bool,
    pub(crate) what: Missing,
    /// The sandbox forbids it: using it is a `SecurityError`.
    pub(crate) forbidden: bool,
}

#[derive(Debug)]
pub(crate) enum Missing {
    Name(SmolStr),
    /// The object and what it does not have.
    Of(Value, Value),
    Hint(String),
    /// A name that an imported module does not have, and what to say of it.
    Export {
        module: Value,
        name: SmolStr,
        hint: String,
    },
}

impl Undefined {
    pub(crate) fn value(strict: bool, what: Missing) -> Value {
        object(Self { strict, what, forbidden: false })
    }

    pub(crate) fn message(&self) -> String {
        match &self.what {
            Missing::Name(name) => format!("{} is undefined", str_repr(name)),
            Missing::Hint(hint) | Missing::Export { hint, .. } => hint.clone(),
            Missing::Of(object, Value::Str(name)) => {
                format!("{} has no attribute {}", str_repr(&type_repr(object)), str_repr(name))
            }
            Missing::Of(object, key) => {
                format!("{} has no element {}", type_repr(object), key.repr())
            }
        }
    }

    pub(crate) fn class(&self) -> Class {
        if self.forbidden { Class::SecurityError } else { Class::UndefinedError }
    }
}

impl Object for Undefined {
    object!(|own| if own.strict { "StrictUndefined" } else { "Undefined" });

    fn repr(&self) -> String {
        "Undefined".into()
    }

    fn str(&self) -> String {
        String::new()
    }

    fn truthy(&self) -> bool {
        false
    }

    fn equals(&self, other: &Value) -> bool {
        other.as_object::<Self>().is_some_and(|other| other.strict == self.strict)
    }
}

pub(crate) fn undefined(value: &Value) -> Option<&Undefined> {
    match value {
        Value::Object(object) => object.as_any().downcast_ref(),
        _ => None,
    }
}

/// Returns the error that using a value makes, if it is a strict undefined one: for functions of a
/// host that look at their arguments.
pub fn use_of_undefined(value: &Value) -> Option<Error> {
    let missing = undefined(value).filter(|missing| missing.strict)?;
    Some(Error::new(missing.class(), missing.message()))
}

/// Returns how Jinja's messages name the type of a value.
pub(crate) fn type_repr(value: &Value) -> String {
    let name = match value {
        Value::Null => return "None".into(),
        Value::Object(object) => {
            let any = object.as_any();
            if let Some(lookup) = any.downcast_ref::<HostLookup>() {
                return format!("{} object", lookup.0.class());
            }
            match object.type_name() {
                name @ ("Macro" | "LoopContext" | "BlockReference" | "TemplateReference") => {
                    format!("jinja2.runtime.{name}")
                }
                name @ ("Namespace" | "Cycler" | "Joiner") => format!("jinja2.utils.{name}"),
                "TemplateModule" => "jinja2.environment.TemplateModule".into(),
                "Markup" => "markupsafe.Markup".into(),
                "StrictUndefined" => "jinja2.runtime.StrictUndefined".into(),
                "Undefined" => "jinja2.runtime.Undefined".into(),
                name => name.to_owned(),
            }
        }
        Value::Dict(dict) if dict.is_ordered() => "collections.OrderedDict".into(),
        other => other.type_name().into_owned(),
    };
    format!("{name} object")
}

/// Text that is safe in HTML. It is text in every other way.
#[derive(Debug)]
pub(crate) struct Markup(pub(crate) SmolStr);

impl Object for Markup {
    object!("Markup");

    fn repr(&self) -> String {
        format!("Markup({})", str_repr(&self.0))
    }

    fn str(&self) -> String {
        self.0.to_string()
    }

    fn truthy(&self) -> bool {
        !self.0.is_empty()
    }

    fn equals(&self, other: &Value) -> bool {
        text_of(other) == Some(&self.0)
    }
}

pub(crate) fn markup(text: impl AsRef<str>) -> Value {
    object(Markup(SmolStr::new(text)))
}

pub(crate) fn is_markup(value: &Value) -> bool {
    value.as_object::<Markup>().is_some()
}

/// Returns the text of a string, safe or not.
pub(crate) fn text_of(value: &Value) -> Option<&SmolStr> {
    match value {
        Value::Str(text) => Some(text),
        Value::Object(object) => object.as_any().downcast_ref::<Markup>().map(|markup| &markup.0),
        _ => None,
    }
}

/// Returns the value with every safe text in it as plain text: what the outside world gets.
pub(crate) fn plain(value: &Value) -> Value {
    match value {
        Value::Object(_) => match text_of(value) {
            Some(text) => Value::Str(text.clone()),
            None => value.clone(),
        },
        Value::List(list) if list.read().iter().any(needs_plain) => {
            Value::List(list.to_vec().iter().map(plain).collect())
        }
        Value::Tuple(items) if items.iter().any(needs_plain) => {
            Value::Tuple(items.iter().map(plain).collect())
        }
        Value::Dict(dict) if dict.read().values().any(needs_plain) => {
            let map: Map =
                dict.entries().into_iter().map(|(key, value)| (key, plain(&value))).collect();
            Value::Dict(Dict::from(map))
        }
        other => other.clone(),
    }
}

fn needs_plain(value: &Value) -> bool {
    fn deep(value: &Value, depth: usize) -> bool {
        if depth > 100 {
            return false;
        }
        match value {
            Value::Object(_) => is_markup(value),
            Value::List(list) => list.read().iter().any(|item| deep(item, depth + 1)),
            Value::Tuple(items) => items.iter().any(|item| deep(item, depth + 1)),
            Value::Dict(dict) => dict.read().values().any(|item| deep(item, depth + 1)),
            _ => false,
        }
    }
    deep(value, 0)
}

/// A method of a built-in type, bound to its object.
#[derive(Debug)]
pub(crate) struct BoundMethod {
    pub(crate) object: Value,
    pub(crate) name: SmolStr,
}

impl Object for BoundMethod {
    // The sandbox wraps the two that could look into objects.
    object!(|own| match own.name.as_str() {
        "format" | "format_map" => "function",
        _ => "builtin_function_or_method",
    });

    fn repr(&self) -> String {
        let of = self.object.type_name();
        format!("<built-in method {} of {of} object at 0x7f0000000000>", self.name)
    }

    fn equals(&self, other: &Value) -> bool {
        other
            .as_object::<Self>()
            .is_some_and(|other| other.name == self.name && other.object.is_same(&self.object))
    }
}

/// A function of the engine itself: `range`, `dict`, `namespace` …
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) repr: &'static str,
    pub(crate) call: fn(&mut super::eval::Interp<'_>, Args) -> Result<Value, Error>,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.repr)
    }
}

impl Object for Builtin {
    object!(|own| if own.repr.starts_with("<class") { "type" } else { "function" });

    fn repr(&self) -> String {
        self.repr.into()
    }
}

/// A function that the embedding program supplies, such as an execution function of Salt.
pub trait Callable: Send + Sync {
    fn call(&self, args: Args) -> Result<Value, Error>;

    /// The name that Python would show, in messages and when the function is printed.
    fn name(&self) -> &str {
        "function"
    }
}

/// A function of the embedding program, as a value.
pub struct HostFunction(pub Arc<dyn Callable>);

impl HostFunction {
    pub fn value(callable: impl Callable + 'static) -> Value {
        object(Self(Arc::new(callable)))
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr())
    }
}

impl Object for HostFunction {
    object!("function");

    fn repr(&self) -> String {
        format!("<function {} at 0x7f0000000000>", self.0.name())
    }
}

impl<F> Callable for F
where
    F: Fn(Args) -> Result<Value, Error> + Send + Sync,
{
    fn call(&self, args: Args) -> Result<Value, Error> {
        self(args)
    }
}

/// A mapping that the embedding program supplies and that is filled on demand, such as `salt`.
pub trait Lookup: Send + Sync {
    /// `lookup[key]`.
    fn item(&self, key: &str) -> Option<Value>;

    /// `lookup.name`.
    fn attribute(&self, name: &str) -> Option<Value> {
        self.item(name)
    }

    fn contains(&self, key: &str) -> bool {
        self.item(key).is_some()
    }

    /// All keys: for iteration and for hints when a key is misspelt.
    fn keys(&self) -> Vec<String>;

    /// The Python class that messages name.
    fn class(&self) -> &str {
        "salt.utils.templates.AliasedLoader"
    }
}

/// A mapping of the embedding program, as a value.
pub struct HostLookup(pub Arc<dyn Lookup>);

impl HostLookup {
    pub fn value(lookup: impl Lookup + 'static) -> Value {
        object(Self(Arc::new(lookup)))
    }
}

impl fmt::Debug for HostLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr())
    }
}

impl Object for HostLookup {
    object!(|own| {
        let class = own.0.class();
        class.rsplit('.').next().unwrap_or(class)
    });

    fn repr(&self) -> String {
        format!("<{} object at 0x7f0000000000>", self.0.class())
    }
}

/// `range(…)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) stop: i64,
    pub(crate) step: i64,
}

impl Range {
    pub(crate) fn len(&self) -> usize {
        let span = if self.step > 0 {
            i128::from(self.stop) - i128::from(self.start)
        } else {
            i128::from(self.start) - i128::from(self.stop)
        };
        let step = i128::from(self.step).abs().max(1);
        usize::try_from((span + step - 1).div_euclid(step).max(0)).unwrap_or(usize::MAX)
    }

    pub(crate) fn get(&self, index: usize) -> Option<i64> {
        (index < self.len()).then(|| self.start + self.step * index as i64)
    }
}

impl Object for Range {
    object!("range");

    fn repr(&self) -> String {
        match self.step {
            1 => format!("range({}, {})", self.start, self.stop),
            step => format!("range({}, {}, {step})", self.start, self.stop),
        }
    }

    fn truthy(&self) -> bool {
        self.len() > 0
    }

    fn equals(&self, other: &Value) -> bool {
        other.as_object::<Self>().is_some_and(|other| {
            self.len() == other.len()
                && (self.len() == 0
                    || (self.start == other.start && (self.len() == 1 || self.step == other.step)))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Keys,
    Values,
    Items,
}

/// `dict.keys()` and its like: they show the dict as it is when they are read.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) dict: Dict,
    pub(crate) kind: ViewKind,
}

impl View {
    pub(crate) fn to_vec(&self) -> Vec<Value> {
        let map = self.dict.read();
        match self.kind {
            ViewKind::Keys => map.keys().map(|key| key.value().clone()).collect(),
            ViewKind::Values => map.values().cloned().collect(),
            ViewKind::Items => map
                .iter()
                .map(|(key, value)| Value::tuple([key.value().clone(), value.clone()]))
                .collect(),
        }
    }
}

impl Object for View {
    object!(|own| match own.kind {
        ViewKind::Keys => "dict_keys",
        ViewKind::Values => "dict_values",
        ViewKind::Items => "dict_items",
    });

    fn repr(&self) -> String {
        format!("{}({})", self.type_name(), Value::list(self.to_vec()).repr())
    }

    fn truthy(&self) -> bool {
        !self.dict.is_empty()
    }

    fn equals(&self, other: &Value) -> bool {
        if self.kind == ViewKind::Values {
            return false;
        }
        let items = match other.as_object::<Self>() {
            Some(other) if other.kind != ViewKind::Values => other.to_vec(),
            _ => match other.as_object::<Set>() {
                Some(set) => set_items(set),
                None => return false,
            },
        };
        let own = self.to_vec();
        own.len() == items.len() && own.iter().all(|item| items.contains(item))
    }
}

/// Makes a set. Python shows small ints in order, and texts in no order that anyone can rely on.
pub(crate) fn set_of(keys: impl IntoIterator<Item = Key>) -> Value {
    let mut keys: Vec<Key> = keys.into_iter().collect();
    if keys.iter().all(|key| matches!(key.value(), Value::Int(_))) {
        keys.sort_by_key(|key| key.as_int());
    }
    Value::from(keys.into_iter().collect::<Set>())
}

pub(crate) fn set_items(set: &Set) -> Vec<Value> {
    set.to_vec().into_iter().map(Key::into_value).collect()
}

/// `a[1:2, 3]`: a slice that did not go into a subscript of its own.
#[derive(Debug)]
pub(crate) struct SliceObject(pub(crate) [Value; 3]);

impl Object for SliceObject {
    object!("slice");

    fn repr(&self) -> String {
        format!("slice({}, {}, {})", self.0[0].repr(), self.0[1].repr(), self.0[2].repr())
    }
}

/// A one-way stream of values: what `map`, `select`, `zip` and their like return.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) name: &'static str,
    /// Streams of streams of streams …: bounded.
    pub(crate) depth: u16,
    /// `None` while it runs.
    pub(crate) state: Mutex<Option<PyIter>>,
}

impl Object for Generator {
    object!(|own| own.name);

    fn repr(&self) -> String {
        match self.name {
            "generator" => "<generator object at 0x7f0000000000>".into(),
            name => format!("<{name} object at 0x7f0000000000>"),
        }
    }
}

/// `namespace(…)`: the one thing whose attributes a template can set.
#[derive(Debug)]
pub(crate) struct Namespace(pub(crate) Dict);

impl Object for Namespace {
    object!("Namespace");

    fn repr(&self) -> String {
        format!("<Namespace {}>", Value::from(&self.0).repr())
    }
}

/// An imported template.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) body: SmolStr,
    pub(crate) exported: OnceLock<Vec<(SmolStr, Value)>>,
}

impl Module {
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let exported = self.exported.get()?;
        exported.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    }
}

impl Object for Module {
    object!("TemplateModule");

    fn repr(&self) -> String {
        match &self.name {
            Some(name) => format!("<TemplateModule {}>", str_repr(name)),
            None => "<TemplateModule memory:7f0000000000>".into(),
        }
    }

    fn str(&self) -> String {
        self.body.to_string()
    }
}

/// A macro, or the body of a call block.
pub(crate) struct Macro {
    pub(crate) name: Option<SmolStr>,
    pub(crate) template: Arc<Template>,
    pub(crate) func: usize,
    pub(crate) captured: Arc<[CellRef]>,
    pub(crate) context: Arc<Context>,
    pub(crate) autoescape: bool,
}

impl fmt::Debug for Macro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr())
    }
}

impl Object for Macro {
    object!("Macro");

    fn repr(&self) -> String {
        match &self.name {
            Some(name) => format!("<Macro {}>", str_repr(name)),
            None => "<Macro anonymous>".into(),
        }
    }
}

/// `super` or `self.name`: a block that can be called.
pub(crate) struct BlockReference {
    pub(crate) name: SmolStr,
    pub(crate) context: Arc<Context>,
    pub(crate) depth: usize,
}

impl fmt::Debug for BlockReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr())
    }
}

impl Object for BlockReference {
    object!("BlockReference");

    fn repr(&self) -> String {
        "<jinja2.runtime.BlockReference object at 0x7f0000000000>".into()
    }
}

/// `self`: the blocks of the template.
pub(crate) struct TemplateReference(pub(crate) Arc<Context>);

impl fmt::Debug for TemplateReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repr())
    }
}

impl Object for TemplateReference {
    object!("TemplateReference");

    fn repr(&self) -> String {
        format!(
            "<TemplateReference {}>",
            self.0.name.as_ref().map_or("None".into(), |name| str_repr(name))
        )
    }
}

/// `loop` in a `for`.
pub(crate) struct Loop {
    pub(crate) state: Mutex<LoopState>,
    pub(crate) depth0: i64,
    /// Of a recursive loop: what a call of `loop` runs.
    pub(crate) recurse: Option<Arc<LoopBody>>,
}

/// The body of a recursive loop, with the variables it was made with.
pub(crate) struct LoopBody {
    pub(crate) template: Arc<Template>,
    pub(crate) func: usize,
    pub(crate) captured: Arc<[CellRef]>,
    pub(crate) context: Arc<Context>,
}

pub(crate) struct LoopState {
    /// What is iterated over, if it has a length of its own.
    pub(crate) iterable: Value,
    /// Taken while the next item is found.
    pub(crate) iter: Option<PyIter>,
    pub(crate) index0: i64,
    pub(crate) length: Option<i64>,
    pub(crate) after: Option<Value>,
    pub(crate) current: Option<Value>,
    pub(crate) before: Option<Value>,
    pub(crate) changed: Option<Vec<Value>>,
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<LoopContext>")
    }
}

impl Object for Loop {
    object!("LoopContext");

    fn repr(&self) -> String {
        let state = self.state.lock();
        let length = state.length.map_or_else(|| "?".to_owned(), |length| length.to_string());
        format!("<LoopContext {}/{length}>", state.index0 + 1)
    }
}

/// `cycler(…)`.
#[derive(Debug)]
pub(crate) struct Cycler {
    pub(crate) items: Vec<Value>,
    pub(crate) at: Mutex<usize>,
}

impl Object for Cycler {
    object!("Cycler");

    fn repr(&self) -> String {
        "<jinja2.utils.Cycler object at 0x7f0000000000>".into()
    }
}

/// `joiner(…)`: nothing the first time, the separator from then on.
#[derive(Debug)]
pub(crate) struct Joiner {
    pub(crate) separator: Value,
    pub(crate) used: Mutex<bool>,
}

impl Object for Joiner {
    object!("Joiner");

    fn repr(&self) -> String {
        "<jinja2.utils.Joiner object at 0x7f0000000000>".into()
    }
}

/// What `groupby` yields: a pair with names.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) grouper: Value,
    pub(crate) list: Value,
}

impl Object for Group {
    object!("_GroupTuple");

    fn repr(&self) -> String {
        Value::tuple([self.grouper.clone(), self.list.clone()]).repr()
    }

    fn equals(&self, other: &Value) -> bool {
        let pair = Value::tuple([self.grouper.clone(), self.list.clone()]);
        match other.as_object::<Self>() {
            Some(other) => self.grouper == other.grouper && self.list == other.list,
            None => pair == *other,
        }
    }
}
