//! `Engine`: the runtime behind a `Cx`.
//!
//! It joins the parts a program chose (how templates are rendered, where pillar and grains come
//! from, whether there is a master) with the native registry. `salt-call`, `salt-minion` and tests
//! differ only in these parts.

use std::{collections::BTreeMap, sync::Arc};

use halite_highstate::States;
use halite_spec::{
    Call, Cx, Error, Event, Function, Job, Refresh, Result, Runtime, StateFn, StateRuns, Template,
    ahead_of,
};
use halite_value::{Dict, Value, suggest};

use crate::{
    python::{AllStates, Found, Python, with_users},
    registry,
};

/// How templates become text and data.
pub trait Rendering: Send + Sync {
    /// Renders with one engine (`jinja`).
    fn render(&self, cx: &Cx, template: &Template) -> Result<String>;

    /// Runs a pipe (`jinja|yaml`, or the file's own `#!` line).
    fn compile(&self, cx: &Cx, template: &Template) -> Result<Value>;

    /// Returns the way to users' Python, if there is one.
    fn python(&self) -> Option<Arc<Python>> {
        None
    }
}

/// Where grains and pillar come from.
pub trait Sources: Send + Sync {
    fn grains(&self, cx: &Cx) -> Result<Dict>;

    fn pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict>;

    /// As [`Sources::pillar`], compiled afresh: a master may keep it for a while (`pillar_cache`).
    fn fresh_pillar(&self, cx: &Cx) -> Result<Dict> {
        self.pillar(cx, &Dict::new(), None)
    }

    /// As [`Sources::pillar`], with one more external source for this time.
    fn pillar_with(&self, cx: &Cx, overrides: &Dict, ext: &Dict) -> Result<Dict> {
        let _ = ext;
        self.pillar(cx, overrides, None)
    }

    /// Hands over the way to users' Python: they may have grains of their own.
    fn use_python(&self, python: &Arc<Python>) {
        let _ = python;
    }
}

/// The way to the master, and the local bus.
pub trait Link: Send + Sync {
    fn fire(&self, cx: &Cx, event: Event) -> Result<bool>;

    fn ask(&self, cx: &Cx, load: Value) -> Result<Value>;

    /// Returns what runs now, as `saltutil.running` shows it.
    fn running(&self, cx: Option<&Cx>) -> Vec<Value>;

    /// As [`Runtime::ahead`].
    fn ahead(&self, jid: &str, waits: bool) -> Vec<Value> {
        ahead_of(self.running(None), jid, waits)
    }

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
    pub(crate) python: Option<Arc<Python>>,
}

impl Engine {
    pub fn new(mut parts: Parts) -> Self {
        let python = parts.rendering.python();
        if let Some(python) = &python {
            parts.sources.use_python(python);
            let (native, python) = (Arc::clone(&parts.states), Arc::clone(python));
            parts.states = Arc::new(AllStates { native, python });
        }
        Self { parts, python }
    }

    /// Calls what users' Python has, natively what we have, and otherwise what a package has.
    fn call_somewhere(&self, cx: &Cx, function: &str, call: Call) -> Result<Value> {
        let native = registry::function_here(cx, function);
        let Some(python) = &self.python else {
            let native = native.ok_or_else(|| self.not_found(cx, function))?;
            return (native.call)(cx, call);
        };
        python.remember(cx);
        match python.find(cx, "modules", function) {
            Found::Function => return python.call(cx, "modules", function, call),
            Found::Missing(reason) if reason.is_empty() => {
                return Err(Error::NotFound(function.to_owned()));
            }
            Found::Missing(reason) => {
                return Err(Error::NotLoaded(reason));
            }
            Found::Nothing => {}
        }
        match native {
            Some(native) => {
                let ret = (native.call)(cx, call);
                // Some write grains in place; Python has a copy.
                if function.starts_with("grains.") && !function.contains("get") {
                    python.bridge().forget();
                }
                ret
            }
            None if python.package_has(cx, "modules", function) => {
                python.call(cx, "modules", function, call)
            }
            None => Err(self.not_found(cx, function)),
        }
    }

    /// Asks a user's own matcher, if there is one.
    pub(crate) fn custom_match(
        &self,
        cx: &Cx,
        kind: &str,
        target: &Value,
        delimiter: Option<&str>,
    ) -> Option<bool> {
        self.python.as_ref()?.matches(cx, kind, target, delimiter)
    }

    /// Says that a function is missing, with the reason or the name that may have been meant.
    fn not_found(&self, cx: &Cx, name: &str) -> Error {
        if let Some(why) = registry::missing(cx, "modules", name) {
            return Error::NotLoaded(why);
        }
        let names = self.function_names(cx);
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
        if crate::barred::is_barred(cx, function) {
            return Err(Error::NotFound(function.to_owned()));
        }
        self.call_somewhere(cx, function, call)
    }

    fn call_from_module(&self, cx: &Cx, function: &str, call: Call) -> Result<Value> {
        if crate::barred::is_disabled(cx, function) {
            return Err(Error::NotFound(function.to_owned()));
        }
        self.call_somewhere(cx, function, call)
    }

    fn has(&self, cx: &Cx, function: &str) -> bool {
        match &self.python {
            Some(python) => python.has(cx, function),
            None => registry::function_here(cx, function).is_some(),
        }
    }

    fn function(&self, cx: &Cx, name: &str) -> Option<&'static Function> {
        match &self.python {
            Some(python) if python.hides("modules", name) => None,
            _ => registry::function_here(cx, name),
        }
    }

    fn function_names(&self, cx: &Cx) -> Vec<String> {
        let native = registry::function_names_here(cx);
        match &self.python {
            Some(python) => {
                python.remember(cx);
                with_users(native, python.names("modules").as_deref())
            }
            None => native,
        }
    }

    fn packaged_names(&self, cx: &Cx, kind: &str) -> Vec<String> {
        self.python.as_ref().map(|python| python.packaged_names(cx, kind)).unwrap_or_default()
    }

    fn state(&self, cx: &Cx, name: &str) -> Option<&'static StateFn> {
        match &self.python {
            Some(python) if python.hides("states", name) => None,
            _ => registry::state_here(cx, name),
        }
    }

    fn described(&self, kind: &str, names: &[String]) -> Dict {
        self.python.as_ref().map(|python| python.describe(kind, names)).unwrap_or_default()
    }

    fn others(&self, kind: &str) -> Option<Dict> {
        let all = match kind {
            "returners" => crate::others::returners(),
            "runners" => crate::others::runners()?,
            _ => return None,
        };
        let users = self.python.as_ref().and_then(|python| Some((python, python.names(kind)?)));
        let Some((python, users)) = users else { return Some(all) };
        let native = all.entries().into_iter().map(|(name, about)| (name.to_str(), about));
        let own = python.describe(kind, &users.functions).entries().into_iter();
        let merged: BTreeMap<_, _> = native
            .filter(|(name, _)| !users.hides(name))
            .chain(own.map(|(name, about)| (name.to_str(), about)))
            .collect();
        Some(merged.into_iter().collect())
    }

    fn state_names(&self, cx: &Cx) -> Vec<String> {
        self.parts.states.names(cx)
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

    fn call_extension(
        &self,
        cx: &Cx,
        kind: &str,
        function: &str,
        call: Call,
    ) -> Result<Option<Value>> {
        if kind == "returners"
            && let Some(answer) = halite_returners::cache::call(cx, function, &call)
        {
            return answer.map(Some);
        }
        crate::python::extension(&*self.parts.rendering, cx, kind, function, call)
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
        if let Some(python) = &self.python
            && !matches!(what, Refresh::Pillar { .. } | Refresh::Schedule)
        {
            // New grains modules may have come.
            python.reload();
        }
        match what {
            Refresh::Grains => replace(&cx.grains, self.parts.sources.grains(cx)?),
            Refresh::Pillar { fresh } => {
                let pillar = match fresh {
                    true => self.parts.sources.fresh_pillar(cx)?,
                    false => self.parts.sources.pillar(cx, &Dict::new(), None)?,
                };
                replace(&cx.pillar, pillar);
            }
            Refresh::Modules | Refresh::Beacons | Refresh::Schedule | Refresh::Matchers => {}
        }
        if let Some(python) = &self.python {
            python.bridge().forget();
        }
        self.parts.link.refreshed(cx, what)?;
        Ok(true)
    }

    fn states(&self) -> &dyn StateRuns {
        self
    }

    fn master_tops(&self, cx: &Cx, minion_opts: &Dict) -> Dict {
        self.given_tops(cx, minion_opts)
    }

    fn ask_master(&self, cx: &Cx, load: Value) -> Result<Value> {
        // On the master itself the link knows its way.
        let is_master = cx.opt_str("__role").as_deref() == Some("master");
        if !is_master && load.get("cmd").is_some_and(|cmd| cmd.to_str().starts_with("halite_")) {
            let none = || Err(Error::failed("there is no master on this machine"));
            return crate::others::ask_beside(cx, &load).unwrap_or_else(none);
        }
        self.parts.link.ask(cx, load)
    }

    fn matches(&self, cx: &Cx, expression: &str, kind: &str) -> Result<bool> {
        match self.custom_match(cx, kind, &Value::str(expression), None) {
            Some(answer) => Ok(answer),
            None => crate::matching::matches(cx, expression, kind),
        }
    }

    fn compile_pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict> {
        self.parts.sources.pillar(&unasked(cx), overrides, pillarenv)
    }

    fn compile_pillar_with(&self, cx: &Cx, overrides: &Dict, ext: &Dict) -> Result<Dict> {
        self.parts.sources.pillar_with(&unasked(cx), overrides, ext)
    }

    fn running(&self) -> Vec<Value> {
        self.parts.link.running(None)
    }

    fn ahead(&self, jid: &str, waits: bool) -> Vec<Value> {
        self.parts.link.ahead(jid, waits)
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

/// A context whose calls nobody asked for by hand: what the templates of a pillar look up must not
/// be masked because `pillar.items` has it compiled.
fn unasked(cx: &Cx) -> Cx {
    let job = Job::new(cx.job.jid.clone(), "", cx.job.user.clone());
    Cx { job: Arc::new(job), ..cx.clone() }
}
