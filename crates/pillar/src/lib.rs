//! The pillar compiler, for masters and for minions without one.
//!
//! [`Compiler::compile`] takes a [`Request`] (whose pillar, with which options) through the top
//! files, the SLS they name, and external sources, and returns the pillar with everything that went
//! wrong and everything it was made from. Read `compile.rs` for the order of things, `sls.rs` for
//! one SLS and its includes, `files.rs` for where they lie.
//!
//! How a text becomes data is the [`Renderer`]'s business: this crate knows no templates. [`pipe`]
//! makes one from the renderers of the crate `renderers`.

mod compile;
pub mod ext;
mod files;
mod inputs;
pub mod pipe;
mod sls;

use std::{path::Path, sync::Arc};

pub use compile::{Compiled, Compiler, Failure, Request};
pub use files::{PillarFiles, Sls};
use halite_spec::Result;
use halite_value::{Dict, Value};
pub use inputs::{Input, Inputs, unchanged};

/// A text to be rendered.
pub struct Source<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    /// The dotted name; empty for a top file.
    pub sls: &'a str,
    pub saltenv: &'a str,
    /// The pipe to use unless the text names its own: `jinja|yaml`.
    pub renderer: &'a str,
    /// Names given by an include (`defaults`).
    pub defaults: &'a Dict,
    /// The pillar as templates may see it: what is known before this compilation, or from external
    /// sources that go first.
    pub pillar: &'a Dict,
    pub request: &'a Request,
    /// Where imports come from. What a renderer reads or calls besides belongs into its inputs.
    pub files: &'a Arc<PillarFiles>,
}

/// Turns texts into data.
pub trait Renderer: Send + Sync {
    fn render(&self, source: &Source<'_>) -> Result<Value>;

    /// Asks a user's own matcher whether a line of a top file means the minion; `None` if there is
    /// none for that kind of match.
    fn matches(&self, kind: &str, target: &Value) -> Option<bool> {
        let _ = (kind, target);
        None
    }
}

/// Decrypts values: the seam for `decrypt_pillar`.
pub trait Decrypter: Send + Sync {
    /// Decrypts every text in a value by a renderer such as `gpg`.
    fn decrypt(&self, value: &Value, renderer: &str) -> Result<Value>;
}
