//! Declared arguments, and binding a call to them.
//!
//! A [`Function`] is a plain static description with an adaptor; `#[function]` and
//! `#[derive(Args)]` write them. Conversions ([`FromArg`]) are as lenient as the Python functions
//! users know: a number given for a text is its `str`, anything given for a flag is its truth.

use std::{
    fmt,
    ops::Deref,
    path::{Path, PathBuf},
};

use halite_value::{Dict, Key, SmolStr, Value, suggest};

use crate::{ArgError, Cx, Error, Result};

/// Positional and keyword arguments of one call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub args: Vec<Value>,
    pub kwargs: Dict,
}

impl Call {
    /// Returns a call with positional arguments.
    pub fn of<T: Into<Value>>(args: impl IntoIterator<Item = T>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), kwargs: Dict::new() }
    }

    /// Adds a keyword argument.
    #[must_use]
    pub fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.kwargs.insert(name, value);
        self
    }
}

/// An execution module: a file of functions.
#[derive(Debug)]
pub struct Module {
    pub name: &'static str,
    pub doc: &'static str,
    pub functions: &'static [&'static Function],
    /// What it cannot do without on a machine.
    pub needs: &'static [crate::Need],
}

/// An execution, runner or wheel function.
#[derive(Debug)]
pub struct Function {
    /// Without the module: `contains`.
    pub name: &'static str,
    /// The name it was declared under, which another name may stand for (`alias!`).
    pub own_name: &'static str,
    /// As it was written; [`Function::help`] is what people read.
    pub doc: &'static str,
    pub params: &'static [Param],
    pub call: fn(&Cx, Call) -> Result<Value>,
}

impl Function {
    /// The same function under another name.
    #[doc(hidden)]
    pub const fn named(&self, name: &'static str) -> Self {
        Self { name, ..*self }
    }
}

/// One declared argument.
#[derive(Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub doc: &'static str,
    /// What it accepts, for people: `text`, `list`, `yes or no` …
    pub kind: &'static str,
    /// Makes the default; `None` means required.
    pub default: Option<fn() -> Value>,
    /// Other names it is accepted under.
    pub aliases: &'static [&'static str],
    /// It takes whatever no other argument took.
    pub rest: bool,
    pub by: By,
}

/// How an argument can be given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// In its place or by its name.
    Any,
    /// By its name only. Salt takes it out of `**kwargs`, so it is in no list of arguments.
    Name,
    /// By its name only, as what Python declares after `*args`.
    Keyword,
    /// In its place only, as what `*args` takes.
    Position,
}

impl Param {
    /// Tells whether `sys.argspec` lists it.
    pub fn is_listed(&self) -> bool {
        !self.rest && self.by != By::Name
    }

    /// Tells whether it can be given in its place.
    pub fn has_place(&self) -> bool {
        self.is_listed() && self.by != By::Keyword
    }

    /// Tells whether it takes names nobody declared.
    pub fn takes_names(&self) -> bool {
        self.rest && self.by != By::Position
    }

    /// Tells whether it takes more positions than are declared.
    pub fn takes_positions(&self) -> bool {
        self.rest && self.by != By::Name
    }
}

/// For the macros: a list of arguments some of which other lists declare.
impl Param {
    #[doc(hidden)]
    pub const fn count(mut parts: &[&[Self]]) -> usize {
        let mut count = 0;
        while let [part, others @ ..] = parts {
            count += part.len();
            parts = others;
        }
        count
    }

    #[doc(hidden)]
    pub const fn join<const N: usize>(mut parts: &[&[Self]]) -> [Self; N] {
        let empty = Self {
            name: "",
            doc: "",
            kind: "",
            default: None,
            aliases: &[],
            rest: false,
            by: By::Any,
        };
        let mut all = [empty; N];
        let mut at = 0;
        while let [part, others @ ..] = parts {
            let mut own: &[Self] = part;
            while let [param, left @ ..] = own {
                all[at] = *param;
                at += 1;
                own = left;
            }
            parts = others;
        }
        all
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A struct whose fields are arguments: all those of a state, or those that several functions take
/// alike (`#[group]`). Made by `#[derive(Args)]`.
pub trait Args: Sized {
    const DOC: &'static str;
    const PARAMS: &'static [Param];
    /// Salt's takes any keyword beside these (and does nothing with it).
    const OPEN: bool;

    fn bind(binder: &mut Binder) -> Result<Self>;
}

/// Argument names nobody declared, each with the declared name it may have meant.
pub type Unknown = Vec<(String, Option<String>)>;

/// Hands out the arguments of a call by declared name.
#[derive(Debug)]
pub struct Binder {
    params: &'static [Param],
    /// Those not yet handed out; positions have become names.
    left: Dict,
    extra: Vec<Value>,
}

impl Binder {
    /// Gives positional arguments their names. Too many is told by [`Binder::finish`].
    pub fn new(call: Call, params: &'static [Param]) -> Self {
        let left = call.kwargs.shallow_copy();
        let mut names = params.iter().filter(|param| param.has_place());
        let mut extra = Vec::new();
        let mut twice = None;
        for value in call.args {
            match names.next() {
                Some(param) if left.contains(param.name) => twice = Some(param.name),
                Some(param) => {
                    left.insert(param.name, value);
                }
                None => extra.push(value),
            }
        }
        if let Some(name) = twice {
            left.insert(TWICE, name);
        }
        Self { params, left, extra }
    }

    pub fn optional<T: FromArg>(&mut self, name: &str, aliases: &[&str]) -> Result<Option<T>> {
        let Some(value) = self.take(name, aliases) else { return Ok(None) };
        let nothing = value.is_null();
        match convert(name, value) {
            // None for what cannot be None: as if it had not been given.
            Err(_) if nothing => Ok(None),
            other => other.map(Some),
        }
    }

    pub fn required<T: FromArg>(&mut self, name: &str, aliases: &[&str]) -> Result<T> {
        let value = self.take(name, aliases).ok_or_else(|| self.absent(name))?;
        convert(name, value)
    }

    /// Why an argument is absent: as in Python, a name nobody declared is told of first; most often
    /// it is this one, misspelt.
    fn absent(&self, name: &str) -> ArgError {
        let declared = |word: &str| {
            self.params.iter().any(|param| param.name == word || param.aliases.contains(&word))
        };
        let stray = self.unknown().into_iter().find(|(word, _)| !declared(word));
        match stray.filter(|_| !self.params.iter().any(|param| param.rest)) {
            Some((name, suggestion)) => ArgError::Unexpected { name, suggestion },
            None => ArgError::Missing(name.into()),
        }
    }

    /// Binds the arguments of a group.
    pub fn group<T: Args>(&mut self) -> Result<T> {
        T::bind(self)
    }

    fn take(&self, name: &str, aliases: &[&str]) -> Option<Value> {
        let value = self.left.remove(name);
        let others = aliases.iter().filter_map(|alias| self.left.remove(*alias)).next_back();
        value.or(others)
    }

    /// Takes everything left. Put the parameter last.
    pub fn rest(&mut self) -> Rest {
        let kwargs = std::mem::take(&mut self.left);
        Rest { args: std::mem::take(&mut self.extra), kwargs }
    }

    /// Takes the positions left: what is given by an unknown name is a mistake.
    pub fn positions(&mut self) -> Rest {
        Rest { args: std::mem::take(&mut self.extra), kwargs: Dict::new() }
    }

    /// Fails if anything is left over. Names beginning with `__` are Salt's own and pass.
    pub fn finish(self) -> Result<()> {
        if let Some(Value::Str(name)) = self.left.get(TWICE) {
            return Err(ArgError::Twice(name.into()).into());
        }
        if !self.extra.is_empty() {
            let allowed = self.params.len();
            return Err(ArgError::TooMany { allowed, given: allowed + self.extra.len() }.into());
        }
        match self.unknown().into_iter().next() {
            Some((name, suggestion)) => Err(ArgError::Unexpected { name, suggestion }.into()),
            None => Ok(()),
        }
    }

    /// Returns the names no argument has, each with the declared name it may have meant.
    pub fn unknown(&self) -> Unknown {
        let names = || self.params.iter().filter(|param| !param.rest).map(|param| param.name);
        self.left
            .keys()
            .into_iter()
            .map(|key| key.to_string())
            .filter(|name| !name.starts_with("__"))
            .map(|name| {
                let suggestion = suggest::nearest(&name, names()).map(str::to_owned);
                (name, suggestion)
            })
            .collect()
    }
}

/// Not a name any caller can give: keyword names are identifiers.
const TWICE: &str = "__twice given__";

fn convert<T: FromArg>(name: &str, value: Value) -> Result<T> {
    let given = value.type_name();
    let shown = value.clone();
    T::from_arg(value).map_err(|expected| {
        let expected = if expected.is_empty() { T::KIND.to_owned() } else { expected };
        let given = match shown {
            Value::Str(_) | Value::Int(_) | Value::Float(_) => format!("{given} {}", shown.repr()),
            _ => given.into_owned(),
        };
        Error::Args(ArgError::Type { name: name.into(), expected, given })
    })
}

/// A type an argument can have.
pub trait FromArg: Sized {
    /// For people: «must be …».
    const KIND: &'static str;

    /// Converts; the error says what was expected (empty: [`FromArg::KIND`]).
    fn from_arg(value: Value) -> Result<Self, String>;
}

impl FromArg for Value {
    const KIND: &'static str = "any value";

    fn from_arg(value: Value) -> Result<Self, String> {
        Ok(value)
    }
}

/// Numbers and dates given for a text are taken as their `str`.
impl FromArg for String {
    const KIND: &'static str = "text";

    fn from_arg(value: Value) -> Result<Self, String> {
        match value {
            Value::List(_) | Value::Dict(_) | Value::Tuple(_) | Value::Null => Err(String::new()),
            Value::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            other => Ok(other.to_str().into()),
        }
    }
}

impl FromArg for SmolStr {
    const KIND: &'static str = "text";

    fn from_arg(value: Value) -> Result<Self, String> {
        String::from_arg(value).map(Into::into)
    }
}

/// Python's truth of whatever was given; the words a command line brings are understood too.
impl FromArg for bool {
    const KIND: &'static str = "yes or no";

    fn from_arg(value: Value) -> Result<Self, String> {
        Ok(match value.as_str() {
            Some(text) => {
                !matches!(text.to_lowercase().as_str(), "" | "false" | "no" | "none" | "off")
            }
            None => value.truthy(),
        })
    }
}

impl FromArg for i64 {
    const KIND: &'static str = "a whole number";

    fn from_arg(value: Value) -> Result<Self, String> {
        match &value {
            Value::Str(text) => text.trim().replace('_', "").parse().map_err(|_| String::new()),
            other => other.to_int().ok_or_default(),
        }
    }
}

impl FromArg for u64 {
    const KIND: &'static str = "a whole number, not negative";

    fn from_arg(value: Value) -> Result<Self, String> {
        i64::from_arg(value)?.try_into().map_err(|_| String::new())
    }
}

impl FromArg for f64 {
    const KIND: &'static str = "a number";

    fn from_arg(value: Value) -> Result<Self, String> {
        match &value {
            Value::Str(text) => text.trim().parse().map_err(|_| String::new()),
            other => other.as_float().ok_or_default(),
        }
    }
}

impl FromArg for Dict {
    const KIND: &'static str = "a dict";

    /// A list of one-key dicts, as SLS files write them, is a dict too.
    fn from_arg(value: Value) -> Result<Self, String> {
        match value {
            Value::Dict(dict) => Ok(dict),
            Value::Null => Ok(Self::new()),
            // Salt only looks whether there is something: command lines say `''` for nothing.
            Value::Str(text) if text.is_empty() => Ok(Self::new()),
            Value::List(list) => {
                let dict = Self::new();
                for item in &list {
                    let Value::Dict(item) = item else { return Err(String::new()) };
                    dict.update(&item);
                }
                Ok(dict)
            }
            _ => Err(String::new()),
        }
    }
}

impl<T: FromArg> FromArg for Option<T> {
    const KIND: &'static str = T::KIND;

    fn from_arg(value: Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::from_arg(value).map(Some) }
    }
}

/// A single item counts as a list of one.
impl<T: FromArg> FromArg for Vec<T> {
    const KIND: &'static str = "a list";

    fn from_arg(value: Value) -> Result<Self, String> {
        match value.items_of_sequence() {
            Some(items) => items.into_iter().map(T::from_arg).collect(),
            None if value.is_null() => Ok(Self::new()),
            None => Ok(vec![T::from_arg(value)?]),
        }
    }
}

/// Texts given as a list or as one text with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings(pub Vec<String>);

impl FromArg for Strings {
    const KIND: &'static str = "a list of texts, or one text with commas";

    fn from_arg(value: Value) -> Result<Self, String> {
        Ok(Self(match &value {
            Value::Str(text) => text
                .split(',')
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect(),
            _ => Vec::from_arg(value)?,
        }))
    }
}

impl Deref for Strings {
    type Target = Vec<String>;

    fn deref(&self) -> &Vec<String> {
        &self.0
    }
}

/// An absolute path. A relative one never gets this far; `~` is the caller's to expand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(PathBuf);

impl AbsPath {
    pub fn new(path: impl Into<PathBuf>) -> Option<Self> {
        let path = path.into();
        path.is_absolute().then_some(Self(path))
    }

    pub fn is_root(&self) -> bool {
        self.0.parent().is_none()
    }
}

impl FromArg for AbsPath {
    const KIND: &'static str = "an absolute path";

    fn from_arg(value: Value) -> Result<Self, String> {
        Self::new(String::from_arg(value)?).ok_or_default()
    }
}

impl Deref for AbsPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// What no declared argument took, for the few functions that truly take anything.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    pub args: Vec<Value>,
    pub kwargs: Dict,
}

impl Rest {
    /// Refuses keywords other than these, in the words of Salt's functions that do so themselves.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        let is_known = |name: &str| name.starts_with("__") || known.contains(&name);
        let entries = self.kwargs.entries().into_iter();
        let unknown = entries.filter(|(key, _)| !is_known(&key.to_str()));
        let unknown: Vec<String> = unknown.map(|(key, value)| format!("{key}={value}")).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let unknown = unknown.join(", ");
        let message = format!("The following keyword arguments are not valid: {unknown}");
        Err(Error::raised("SaltInvocationError", message))
    }
}

impl FromArg for Rest {
    const KIND: &'static str = "further arguments";

    fn from_arg(_: Value) -> Result<Self, String> {
        Err("given as further arguments".into())
    }
}

trait OkOrDefault<T> {
    fn ok_or_default(self) -> Result<T, String>;
}

impl<T> OkOrDefault<T> for Option<T> {
    fn ok_or_default(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

/// A default that can be shown in `sys.argspec`.
pub trait ToDefault {
    fn to_default(&self) -> Value;
}

macro_rules! to_default {
    ($($type:ty => |$name:ident| $make:expr;)*) => {
        $(impl ToDefault for $type {
            fn to_default(&self) -> Value { let $name = self; $make }
        })*
    };
}

to_default! {
    Value => |value| value.clone();
    String => |text| text.into();
    SmolStr => |text| text.into();
    bool => |flag| (*flag).into();
    i64 => |int| (*int).into();
    u64 => |int| (*int).into();
    f64 => |float| (*float).into();
    Dict => |dict| dict.into();
    Strings => |texts| Value::list(texts.0.clone());
    AbsPath => |path| path.to_string().into();
}

impl<T: ToDefault> ToDefault for Option<T> {
    fn to_default(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_default)
    }
}

impl<T: ToDefault> ToDefault for Vec<T> {
    fn to_default(&self) -> Value {
        Value::list(self.iter().map(T::to_default))
    }
}

/// What a function may return.
pub trait IntoReturn {
    fn into_return(self) -> Result<Value>;
}

impl<T: Into<Value>> IntoReturn for Result<T> {
    fn into_return(self) -> Result<Value> {
        self.map(Into::into)
    }
}

impl From<Strings> for Value {
    fn from(texts: Strings) -> Self {
        Self::list(texts.0)
    }
}

/// Lets `Key` stand where a text argument name is wanted.
impl FromArg for Key {
    const KIND: &'static str = "a value that can be a key";

    fn from_arg(value: Value) -> Result<Self, String> {
        Self::try_from(value).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    const fn param(name: &'static str) -> Param {
        let (default, by) = (None, By::Any);
        Param { name, doc: "", kind: "text", default, aliases: &[], rest: false, by }
    }

    static PARAMS: [Param; 2] = [param("path"), param("text")];

    #[test]
    fn positions_get_names() {
        let call = Call::of(["/a"]).with("text", 5);
        let mut binder = Binder::new(call, &PARAMS);
        assert_eq!(binder.required::<String>("path", &[]).unwrap(), "/a");
        assert_eq!(binder.required::<String>("text", &[]).unwrap(), "5");
        binder.finish().unwrap();
    }

    #[test]
    fn misfits_are_named() {
        let message = |call: Call| {
            let mut binder = Binder::new(call, &PARAMS);
            let _ = binder.optional::<String>("path", &[]);
            binder.finish().unwrap_err().to_string()
        };
        assert_eq!(
            message(Call::default().with("txt", 1)),
            "unexpected argument `txt`; did you mean `text`?"
        );
        assert_eq!(message(Call::of(["a"]).with("path", "b")), "argument `path` was given twice");
        let three = message(Call::of(["a", "b", "c"]));
        assert_eq!(three, "takes 2 arguments but 3 were given");
        let mut binder = Binder::new(Call::of([dict! {}]), &PARAMS);
        let error = binder.required::<String>("path", &[]).unwrap_err().to_string();
        assert_eq!(error, "argument `path` must be text, not dict");
    }
}
