//! The state engine: SLS → high data → low chunks → requisite graph → ordered run.
//!
//! Read in this order:
//! - [`parse`] says what an SLS is once it is rendered, and [`places`] where its parts stand;
//! - [`gather`] loads SLS files with their includes, and [`tree`] joins them into high data;
//! - [`high`] is that data, and its way to a graph: through
//! - [`edits`], what parts do to others (`extend`, `*_in`, `use`, `exclude`; targets are found in
//!   the [`index`]),
//! - [`check`], the checks of its form, and
//! - [`low`], which makes low chunks of it, one per state to run;
//! - [`graph`] looks requisites up, makes steps and edges of them, and orders the steps;
//! - [`run`] runs them: requisites as gates, then one state with its [`guards`] (`onlyif`, `unless`
//!   …), retry, watch, listen and threads.
//!
//! The crate is handed its states ([`States`]) and everything else through a
//! [`Cx`](halite_spec::Cx): it knows no state by name, so its tests use five-line toy states. High
//! data is typed inside and becomes a dict to be shown (`state.show_highstate`); low chunks are the
//! dicts users know from `state.show_lowstate`. It is the only code that knows requisites, and it never looks at the
//! machine itself.

mod check;
mod edits;
mod gather;
mod graph;
mod guards;
mod high;
mod index;
mod keywords;
mod low;
mod parse;
mod places;
mod run;
mod slots;
mod tree;

use halite_spec::{Aggregate, Call, Cx, Keys, Outcome, Result};
use halite_value::{Dict, Place};

pub use gather::{Gathered, Named, available, gather, gather_named};
pub use graph::Graph;
pub use high::{High, compile_high, compile_unfolded, folded_problems, form_problems};
pub use keywords::is_engine_keyword;
pub use low::{Settings, tag};
pub use places::Places;
pub use run::{Run, RunOptions, umask};

/// The states the engine can run.
pub trait States: Send + Sync {
    /// Tells whether `file.absent` can be run.
    fn has(&self, cx: &Cx, state: &str) -> bool;

    /// Says why a state cannot be run, when more is known than that it does not exist.
    fn missing_reason(&self, cx: &Cx, state: &str) -> Option<String>;

    /// Returns the names of all states: for suggestions.
    fn names(&self, cx: &Cx) -> Vec<String>;

    /// Returns the declared arguments.
    fn params(&self, state: &str) -> Params;

    /// Returns the order of the keys in the returns of a state.
    fn keys(&self, state: &str) -> Keys {
        let _ = state;
        Keys::USUAL
    }

    /// Tells whether the module reacts to `watch`.
    fn watches(&self, module: &str) -> bool;

    fn aggregate(&self, module: &str) -> Option<Aggregate>;

    /// Tells whether chunks of the module may be joined.
    fn can_aggregate(&self, module: &str) -> bool {
        self.aggregate(module).is_some()
    }

    /// Joins a chunk with others of its group by a user's own `mod_aggregate`, which may change the
    /// others; `None` where the module has none.
    fn aggregate_users(&self, cx: &Cx, low: &Dict, group: &[Dict], running: &Dict) -> Option<Dict> {
        let _ = (cx, low, group, running);
        None
    }

    fn run(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome>;

    /// Runs the watch action of a state (`sfun` is the function declared).
    fn watch(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome>;
}

/// The arguments a state declares.
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub names: Vec<String>,
    /// Those without a default.
    pub required: Vec<String>,
    /// It takes any others as well.
    pub open: bool,
    /// Salt refuses any others; where it does not, they are only warned of.
    pub closed: bool,
}

/// Something wrong in the author's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Salt's words.
    pub text: String,
    pub place: Option<Place>,
    pub help: Option<String>,
}

impl Problem {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), place: None, help: None }
    }

    #[must_use]
    pub fn at(mut self, place: Option<&Place>) -> Self {
        self.place = place.cloned();
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Salt's text, then where and what to do: what `state.apply` returns in its list of errors.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        if let Some(place) = &self.place {
            write!(f, "\n  --> {place}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n   = help: {help}")?;
        }
        Ok(())
    }
}

/// A low chunk: one state to run, with everything it needs.
pub type Low = Dict;
