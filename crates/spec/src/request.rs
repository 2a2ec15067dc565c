//! What a caller asks of the state engine.

use std::sync::Arc;

use halite_value::{Dict, Value};

/// What to compile, and how.
#[derive(Clone, Debug)]
pub struct StateRequest {
    pub what: What,
    pub saltenv: Option<String>,
    pub pillarenv: Option<String>,
    /// `test=True`; `None` takes the configured default.
    pub test: Option<bool>,
    pub pillar: Option<Dict>,
    /// SLS names or ids to leave out.
    pub exclude: Value,
    /// Run although another state run is in progress.
    pub concurrent: bool,
    pub failhard: Option<bool>,
    /// Other options (`localconfig` content, `mock`, `orchestration_jid` …).
    pub extra: Dict,
    /// Where finished states are written down, so that a run can go on after a crash.
    pub journal: Option<Arc<dyn Journal>>,
}

/// What a run remembers beyond the life of its process.
pub trait Journal: Send + Sync + std::fmt::Debug {
    /// Returns the states that are done already, by tag. They are not run again.
    fn known(&self) -> Vec<(String, Dict)>;

    /// Called when a state is done, before whatever depends on it begins.
    fn finished(&self, tag: &str, ret: &Dict);
}

/// The source of the states, and the form of the answer when shown.
#[derive(Clone, Debug)]
pub enum What {
    /// The top file decides.
    Highstate,
    Sls(Vec<String>),
    /// One id (or several) out of SLS files.
    SlsId {
        ids: Vec<String>,
        mods: Vec<String>,
    },
    High(Value),
    Low(Value),
    /// An SLS given as text; the file it was read from, if it was.
    TemplateText {
        text: String,
        path: Option<String>,
    },
    /// The top file itself.
    Top,
}

impl StateRequest {
    pub fn new(what: What) -> Self {
        Self {
            what,
            saltenv: None,
            pillarenv: None,
            test: None,
            pillar: None,
            exclude: Value::Null,
            concurrent: false,
            failhard: None,
            extra: Dict::new(),
            journal: None,
        }
    }
}
