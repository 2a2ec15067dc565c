//! YAML 1.1 as Salt reads and writes it: PyYAML's rules with Salt's own additions.
//!
//! Reading goes text → events ([`events`]) → nodes ([`compose`]) → values ([`construct`]), as
//! PyYAML does it, because the order of these steps decides which of several errors is reported:
//! a syntax error anywhere comes before a duplicate key, and containers are filled level by level.
//!
//! What surprises people, and formulas rely on:
//! - `0644` is 644 (Salt strips the zeros; only `-0644` and `!!int` with a sign are octal), `1:30`
//!   is 90, `yes` is true, `y` is text, dates stay text;
//! - a duplicate key is an error, by Python's equality (`1` and `true` collide), after `<<` has
//!   been merged in;
//! - an alias is the same container, not a copy.
//!
//! Nothing here constructs anything but data: tags outside a fixed list are refused. Depth, size
//! and the number of nodes that aliases expand to are limited, since whoever walks the result
//! later pays for every one of them.

mod compose;
mod construct;
mod dump;
mod emit;
mod error;
mod events;
mod extended;
mod scalar;
mod scan;

use std::sync::Arc;

pub use dump::{DumpError, DumpOptions, LineBreak, Style, dquote, dump, encode_scalar, squote};
pub use error::{Error, ErrorKind, Mark};

use crate::{Place, Value};

/// Turns a line and a column of the text, counted from 1, into the place the author knows.
pub type PlaceMap<'a> = &'a dyn Fn(u32, u32) -> Place;

/// How to read. The default is what `salt.utils.yaml.safe_load` does with a text.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The name shown in messages. PyYAML says `<unicode string>` when it was handed a text.
    pub name: &'a str,
    /// Whether dicts and lists remember where their items stood.
    pub places: bool,
    /// Where a position of this text really is, when a template produced the text. Without it,
    /// places carry `name` and the position itself.
    pub place_map: Option<PlaceMap<'a>>,
    pub dialect: Dialect,
    /// Whether mappings become ordered dicts ([`Dict::is_ordered`](crate::Dict::is_ordered)).
    pub ordered: bool,
    /// Keys may repeat, and `!aggregate` and `!reset` say what becomes of their values.
    pub extended: bool,
    pub limits: Limits,
}

/// Whose rules decide what a scalar means and which keys may meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Salt's loader: renderers, configuration, the Jinja filter `load_yaml`.
    #[default]
    Salt,
    /// PyYAML's own safe loader, behind `slsutil.deserialize` and `file.serialize`: `0644` is
    /// octal, dates become times, the last of two equal keys wins.
    Plain,
}

/// What one text may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of text.
    pub bytes: usize,
    /// Containers inside each other.
    pub depth: usize,
    /// Nodes of the whole tree when every alias is followed. Ten times the nodes that are written
    /// out are always allowed, and a tree without aliases is as large as its text.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 256 << 20, depth: 400, nodes: 2_000_000 }
    }
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self {
            name: "<unicode string>",
            places: false,
            place_map: None,
            dialect: Dialect::default(),
            ordered: false,
            extended: false,
            limits: Limits::default(),
        }
    }
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions")
            .field("name", &self.name)
            .field("places", &self.places)
            .field("place_map", &self.place_map.is_some())
            .field("dialect", &self.dialect)
            .field("limits", &self.limits)
            .finish()
    }
}

/// Reads the single document of a text; an empty text is [`Value::Null`].
pub fn load(text: &str, options: &LoadOptions<'_>) -> Result<Value, Error> {
    read(text, options).map_err(|error| error.named(options))
}

/// Reads with the default options: `yaml.safe_load`.
pub fn load_str(text: &str) -> Result<Value, Error> {
    load(text, &LoadOptions::default())
}

fn read(text: &str, options: &LoadOptions<'_>) -> Result<Value, Error> {
    if text.len() > options.limits.bytes {
        let limit = options.limits.bytes;
        return Err(Error::limit(
            format!("the text is longer than {limit} bytes"),
            Mark::default(),
        ));
    }
    let mut tree = compose::compose(text, options.limits)?;
    if options.extended {
        extended::join(&mut tree);
    }
    construct::construct(tree, &Places::new(options), options)
}

/// Makes places for containers; `None` from [`Places::at`] when nobody asked for them.
struct Places<'a> {
    wanted: bool,
    file: Arc<str>,
    map: Option<PlaceMap<'a>>,
}

impl<'a> Places<'a> {
    fn new(options: &LoadOptions<'a>) -> Self {
        let file = if options.places { Arc::from(options.name) } else { Arc::default() };
        Self { wanted: options.places, file, map: options.place_map }
    }

    fn at(&self, mark: Mark) -> Place {
        let (line, column) = (mark.line + 1, mark.column + 1);
        match self.map {
            Some(map) => map(line, column),
            None => Place { file: self.file.clone(), line, column },
        }
    }
}
