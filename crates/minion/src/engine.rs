//! `Engine`: the runtime behind a `Cx`.
//!
//! It joins the parts a program chose (how templates are rendered, where pillar and grains come
//! from, whether there is a master) with the native registry. `salt-call`, `salt-minion` and tests
//! differ only in these parts.

use std::sync::Arc;

use halite_highstate::States;
use halite_spec::{
    Call, Cx, Error, Event, Function, Refresh, Result, Runtime, StateFn, StateRuns, Template,
};
use halite_value::{Dict, Value, suggest};

use crate::registry;

/// How templates become text and data.
pub trait Rendering: Send + Sync {
    /// Renders with one engine (`jinja`).
    fn render(&self, cx: &Cx, template: &Template) -> Result<String>;

    /// Runs a pipe (`jinja|yaml`, or the file's own `#!` line).
    fn compile(&self, cx: &Cx, template: &Template) -> Result<Value>;
}

/// Where grains and pillar come from.
pub trait Sources: Send + Sync {
    fn grains(&self, cx: &Cx) -> Result<Dict>;

    fn pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict>;
}

/// The way to the master, and the local bus.
pub trait Link: Send + Sync {
    fn fire(&self, cx: &Cx, event: Event) -> Result<bool>;

    fn ask(&self, cx: &Cx, load: Value) -> Result<Value>;

    /// Returns what runs now, as `saltutil.running` shows it.
    fn running(&self, cx: Option<&Cx>) -> Vec<Value>;

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value>;

    /// Told after something was loaded anew, so that a daemon follows.
    fn refreshed(&self, cx: &Cx, what: Refresh) -> Result<()>;

    /// Asks the daemon of this machine; `None` when there is none.
    fn ask_daemon(
        &self,
        cx: &Cx,
        tag: &str,
        request: &Dict,
        reply: Option<&str>,
    ) -> Result<Option<Dict>> {
        let _ = (cx, tag, request, reply);
        Ok(None)
    }
}

/// What an [`Engine`] is made of.
#[derive(Clone)]
pub struct Parts {
    pub rendering: Arc<dyn Rendering>,
    pub sources: Arc<dyn Sources>,
    pub link: Arc<dyn Link>,
    pub states: Arc<dyn States>,
}

/// The runtime.
pub struct Engine {
    pub(crate) parts: Parts,
}

impl Engine {
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Says that a function is missing, with the name that may have been meant.
    fn not_found(&self, name: &str) -> Error {
        let names = self.function_names();
        match suggest::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => Error::Unavailable {
                function: name.to_owned(),
                reason: format!("there is no such function; did you mean `{near}`?"),
            },
            None => Error::NotFound(name.to_owned()),
        }
    }
}

impl Runtime for Engine {
    fn call(&self, cx: &Cx, function: &str, call: Call) -> Result<Value> {
        let native = registry::function(function).ok_or_else(|| self.not_found(function))?;
        (native.call)(cx, call)
    }

    fn has(&self, function: &str) -> bool {
        registry::function(function).is_some()
    }

    fn function(&self, name: &str) -> Option<&'static Function> {
        registry::function(name)
    }

    fn function_names(&self) -> Vec<String> {
        registry::function_names()
    }

    fn state(&self, name: &str) -> Option<&'static StateFn> {
        registry::state(name)
    }

    fn state_names(&self) -> Vec<String> {
        self.parts.states.names()
    }

    fn render(&self, cx: &Cx, template: &Template) -> Result<String> {
        // The caller puts the error into a comment, in Salt's words; the place would be lost.
        self.parts.rendering.render(cx, template).inspect_err(|error| {
            if let Error::Source { place: Some(place), help, .. } = error {
                let help = help.as_ref().map(|help| format!("\n   = help: {help}"));
                let help = help.unwrap_or_default();
                tracing::error!("a template does not render\n  --> {place}{help}");
            }
        })
    }

    fn compile(&self, cx: &Cx, template: &Template) -> Result<Value> {
        self.parts.rendering.compile(cx, template)
    }

    fn fire(&self, cx: &Cx, event: Event) -> Result<bool> {
        self.parts.link.fire(cx, event)
    }

    fn refresh(&self, cx: &Cx, what: Refresh) -> Result<bool> {
        let replace = |old: &Dict, new: Dict| {
            let new = new.entries();
            let mut map = old.write();
            map.clear();
            map.extend(new);
        };
        match what {
            Refresh::Grains => replace(&cx.grains, self.parts.sources.grains(cx)?),
            Refresh::Pillar => {
                let pillar = self.parts.sources.pillar(cx, &Dict::new(), None)?;
                replace(&cx.pillar, pillar);
            }
            Refresh::Modules | Refresh::Beacons | Refresh::Schedule | Refresh::Matchers => {}
        }
        self.parts.link.refreshed(cx, what)?;
        Ok(true)
    }

    fn states(&self) -> &dyn StateRuns {
        self
    }

    fn ask_master(&self, cx: &Cx, load: Value) -> Result<Value> {
        self.parts.link.ask(cx, load)
    }

    fn matches(&self, cx: &Cx, expression: &str, kind: &str) -> Result<bool> {
        crate::matching::matches(cx, expression, kind)
    }

    fn compile_pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict> {
        self.parts.sources.pillar(cx, overrides, pillarenv)
    }

    fn running(&self) -> Vec<Value> {
        self.parts.link.running(None)
    }

    fn ask_daemon(
        &self,
        cx: &Cx,
        tag: &str,
        request: &Dict,
        reply: Option<&str>,
    ) -> Result<Option<Dict>> {
        self.parts.link.ask_daemon(cx, tag, request, reply)
    }

    fn signal_job(&self, jid: &str, signal: i32) -> Result<Value> {
        self.parts.link.signal_job(jid, signal)
    }
}
