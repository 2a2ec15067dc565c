//! What a caller asks of the state engine.

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
    /// An SLS given as text.
    TemplateText(String),
    /// The top file itself.
    Top,
    /// The names of SLS the top file gives.
    States,
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
        }
    }
}
