//! What one option is: name, accepted types, preset, sentence.
//!
//! The tables in `common.rs`, `master.rs`, `minion.rs` and `programs.rs` are written with the
//! constructors here, one line per option. A preset is a *kind* of value, not the value itself:
//! paths are given relative to the folder they belong to, so no table knows this machine.

use halite_value::Value;

/// A type of value, by Python's name for it: Salt's warnings print these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    None,
    Bool,
    Int,
    Float,
    Str,
    List,
    Tuple,
    Dict,
}

impl Type {
    /// Returns Python's name for the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::List => "list",
            Self::Tuple => "tuple",
            Self::Dict => "dict",
        }
    }
}

pub(crate) const STR: &[Type] = &[Type::Str];
pub(crate) const INT: &[Type] = &[Type::Int];
pub(crate) const FLOAT: &[Type] = &[Type::Float];
pub(crate) const BOOL: &[Type] = &[Type::Bool];
pub(crate) const LIST: &[Type] = &[Type::List];
pub(crate) const DICT: &[Type] = &[Type::Dict];
/// A number, whole or not.
pub(crate) const NUM: &[Type] = &[Type::Int, Type::Float];
/// Anything: the code that uses the option decides.
pub(crate) const ANY: &[Type] = &[];

/// The value of an option nobody set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// The option does not exist until a file sets it.
    Absent,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'static str),
    List(&'static [Preset]),
    Dict(&'static [(&'static str, Preset)]),
    /// A path below the configuration folder, `/etc/salt`.
    Etc(&'static str),
    /// A path below `/var/cache/salt`.
    Cache(&'static str),
    /// A path below `/var/run`.
    Run(&'static str),
    /// A path below `/var/log/salt`.
    Log(&'static str),
    /// A path below `/srv`.
    Srv(&'static str),
    /// A path below `/usr/share`.
    Share(&'static str),
    /// A path below the home folder of the calling user.
    Home(&'static str),
    /// The name of the calling user.
    User,
    /// The send buffer of local connections: nothing unless a file asks for it.
    IpcBuffer,
}

/// What presets depend on: the caller and the machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of the calling user.
    pub user: String,
    /// Home folder of the calling user.
    pub home: String,
}

impl Preset {
    /// Returns the value this preset stands for, or `None` when the option is to stay absent.
    #[must_use]
    pub fn value(&self, facts: &Facts) -> Option<Value> {
        Some(match self {
            Self::Absent => return None,
            Self::None => Value::Null,
            Self::Bool(b) => Value::from(*b),
            Self::Int(i) => Value::from(*i),
            Self::Float(f) => Value::from(*f),
            Self::Str(s) => Value::from(*s),
            Self::List(items) => Value::list(items.iter().filter_map(|item| item.value(facts))),
            Self::Dict(items) => Value::Dict(
                items.iter().filter_map(|(key, item)| Some((*key, item.value(facts)?))).collect(),
            ),
            Self::Etc(path) => Value::from(format!("{}/{path}", crate::CONFIG_DIR)),
            Self::Cache(path) => Value::from(format!("{}/{path}", crate::CACHE_DIR)),
            Self::Run(path) => Value::from(format!("/var/run/{path}")),
            Self::Log(path) => Value::from(format!("/var/log/salt/{path}")),
            Self::Srv(path) => Value::from(format!("/srv/{path}")),
            Self::Share(path) => Value::from(format!("/usr/share/{path}")),
            Self::Home(path) => Value::from(format!("{}/{path}", facts.home)),
            Self::User => Value::from(facts.user.as_str()),
            Self::IpcBuffer => Value::from(0),
        })
    }
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    pub name: &'static str,
    /// Accepted types; empty for any.
    pub types: &'static [Type],
    /// Value on a master when no file sets it.
    pub master: Preset,
    /// Value on a minion when no file sets it.
    pub minion: Preset,
    /// What the option is for, in one sentence.
    pub about: &'static str,
    /// Whether a value of another type is worth a warning. Salt checks only some of its options.
    pub checked: bool,
    /// Whether Halite does something with it.
    pub acts: bool,
    /// Whether there is nothing to do: it steers a part of Salt that Halite does not have, and the
    /// user misses nothing.
    pub moot: bool,
}

impl Opt {
    /// Marks an option whose type Salt does not check.
    #[must_use]
    pub const fn unchecked(mut self) -> Self {
        self.checked = false;
        self
    }

    /// Marks an option for which Halite has no use, and needs none.
    #[must_use]
    pub const fn moot(mut self) -> Self {
        self.moot = true;
        self
    }

    /// Marks an option Halite acts on.
    #[must_use]
    pub const fn acts(mut self) -> Self {
        self.acts = true;
        self
    }
}

/// An option with the same preset on master and minion; in the tables of one daemon, the other is
/// simply never asked.
pub(crate) const fn opt(
    name: &'static str,
    types: &'static [Type],
    preset: Preset,
    about: &'static str,
) -> Opt {
    Opt {
        name,
        types,
        master: preset,
        minion: preset,
        about,
        checked: true,
        acts: false,
        moot: false,
    }
}

pub(crate) const fn both(
    name: &'static str,
    types: &'static [Type],
    preset: Preset,
    about: &'static str,
) -> Opt {
    opt(name, types, preset, about)
}

pub(crate) const fn each(
    name: &'static str,
    types: &'static [Type],
    master: Preset,
    minion: Preset,
    about: &'static str,
) -> Opt {
    Opt { name, types, master, minion, about, checked: true, acts: false, moot: false }
}
