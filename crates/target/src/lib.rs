//! Targets: which minions a command or a line of a top file means.
//!
//! Read in this order: [`fnmatch`] (globs), `path` (`a:b:c` into grains and pillar), `expr`
//! (what the user writes, parsed once), then the two evaluators: `minion` for one minion that
//! knows itself, `index` for the master that remembers many. [`top`] works out what a top file
//! gives a minion.
//!
//! Absent on purpose: I/O. Grains and pillar are handed in.

mod bits;
mod error;
mod expr;
pub mod fnmatch;
mod index;
mod minion;
mod net;
mod nodegroup;
mod path;
mod re;
pub mod top;

pub use error::{Error, Kind};
pub use expr::{DELIMITER, Expr, Options, TargetType};
pub use index::{Index, Matched, Search, Uncached};
pub use minion::Minion;
pub use net::{Net, NotNet};
pub use path::{How, PathPattern};
pub use re::Regex;
