//! One state: checked, asked its guards, called, checked again, retried, and its return completed.
//!
//! A [`Caller`] has what every call of a run needs and can be sent to a thread; a [`Deed`] is one
//! chunk about to be called. Nothing here knows of other states.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use halite_spec::{Call, Cx, Error, Keys, Outcome, Refresh};
use halite_value::{Dict, List, Value};

use super::{
    RunOptions,
    retry::{Attempts, Retry},
    returns::{self, is_set},
};
use crate::{Low, Params, States, graph::Pass, guards, keywords, low::text, places::Places, slots};

/// What every call of a run needs. Shared by all: a copy for each would make the run's cost
/// quadratic.
pub(super) struct Caller {
    pub(super) cx: Cx,
    pub(super) states: Arc<dyn States>,
    pub(super) options: RunOptions,
    pub(super) places: Places,
    /// The next `__run_num__`.
    pub(super) numbers: AtomicI64,
}

impl Caller {
    pub(super) fn next_number(&self) -> i64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls one state, with its guards and retries.
    pub(super) fn call(&self, low: &Low, pass: Pass) -> Dict {
        self.call_as(low, pass, None)
    }

    /// As [`Self::call`], under a number that was taken before.
    pub(super) fn call_as(&self, low: &Low, pass: Pass, number: Option<i64>) -> Dict {
        let deed = Deed::new(self, low, number);
        let problems = deed.problems();
        if !problems.is_empty() {
            let comment = problems.iter().map(|problem| format!("{problem}\n")).collect::<String>();
            tracing::error!("{comment}");
            // Without `__id__` and `__sls__`, as in Salt.
            let outcome = Outcome::failed(&comment).with_keys(Keys::NOT_CALLED);
            let ret = outcome.to_value(&deed.name());
            ret.insert("__run_num__", deed.number());
            return ret;
        }
        match pass {
            Pass::Check => deed.answer(true),
            Pass::Apply => deed.retried(),
        }
    }
}

/// A chunk about to be called.
pub(super) struct Deed<'c> {
    pub(super) caller: &'c Caller,
    pub(super) low: &'c Low,
    /// The state declared, such as `file.managed`; also where its watch action is called.
    pub(super) state: String,
    pub(super) exists: bool,
    watches: bool,
    /// Its `__run_num__`, if that is settled.
    number: Option<i64>,
    pub(super) params: Params,
    cx: Cx,
}

impl<'c> Deed<'c> {
    fn new(caller: &'c Caller, low: &'c Low, number: Option<i64>) -> Self {
        let (module, function) = (text(low, "state"), text(low, "fun"));
        let watches = function == "mod_watch";
        // Behind `mod_watch` stands the function watched for.
        let declared = low.get("sfun").filter(|_| watches).map(|function| function.to_string());
        let state = format!("{module}.{}", declared.unwrap_or(function));
        let exists = caller.states.has(&caller.cx, &state);
        let params = if exists { caller.states.params(&state) } else { Params::default() };
        let cx = Cx { low: low.clone(), ..caller.cx.clone() };
        Self { caller, low, state, exists, watches, number, params, cx }
    }

    fn number(&self) -> i64 {
        self.number.unwrap_or_else(|| self.caller.next_number())
    }

    pub(super) fn name(&self) -> Value {
        self.low.get("name").unwrap_or_default()
    }

    /// Calls until `retry` is content; without it, once.
    fn retried(&self) -> Dict {
        let retry = self.low.get("retry").map(|retry| Retry::read(&retry));
        let mut attempts = Attempts::default();
        loop {
            let ret = self.once();
            let Some(retry) = &retry else { return ret };
            if self.caller.options.test {
                ret.insert("comment", text(&ret, "comment") + &retry.announcement());
                return ret;
            }
            let pause = retry.pause();
            let is_over = retry.is_over(attempts.count() + 1, &ret);
            if !is_over {
                tracing::info!(
                    "State result does not match retry until value, state will be re-run in \
                     {pause} seconds"
                );
            }
            if is_over || self.cx.sleep(Duration::from_secs(pause.unsigned_abs())).is_err() {
                return attempts.close(ret);
            }
            attempts.add(&ret, pause);
        }
    }

    /// Calls once, and completes the return.
    fn once(&self) -> Dict {
        let (started, start_time) = (Instant::now(), returns::time_of_day());
        let name = || text(self.low, "name");
        tracing::info!("Running state [{}] at time {start_time}", name());
        tracing::info!("Executing state {} for [{}]", self.state, name());
        let ret = self.answer(self.caller.options.test);
        ret.insert("__sls__", self.low.get("__sls__"));
        ret.insert("__run_num__", self.number());
        if is_set(self.low, "no_log") {
            returns::hide(&ret);
        }
        self.refresh(&ret);
        ret.insert("start_time", start_time);
        let duration = returns::milliseconds(started.elapsed());
        ret.insert("duration", duration);
        ret.insert("__id__", self.low.get("__id__"));
        returns::log(&ret, self.place_of_failure(&ret));
        tracing::info!(
            "Completed state [{}] at time {} (duration_in_ms={duration})",
            name(),
            returns::time_of_day()
        );
        ret
    }

    /// Asks the guards, the state and then its `check_cmd`; adds what we have to say about it.
    fn answer(&self, test: bool) -> Dict {
        let ret = self.act(test).unwrap_or_else(|error| {
            let mut text = returns::error_text(&error);
            if let Some(place) = self.place_of_mistake(&error) {
                text.push_str(&format!("\n  --> {place}"));
            }
            // An exception ends the state before it has a return of its own.
            let keys = match error {
                Error::Failed(_) | Error::Invalid(_) => self.caller.states.keys(&self.state),
                _ => Keys::NOT_CALLED,
            };
            Outcome::failed(text).with_keys(keys).to_value(&self.name())
        });
        let mut warnings = self.unknown_arguments();
        if returns::is_failure(&ret) {
            warnings.extend(self.missing_sources());
        }
        if !warnings.is_empty()
            && let Value::List(list) = ret.get_or_insert_with("warnings", || List::new().into())
        {
            list.extend(warnings.into_iter().map(Value::from));
        }
        // A state that declares `check_cmd` runs it itself (`file.managed`, on the new content).
        if self.low.contains("check_cmd") && !self.declares("check_cmd") {
            let (result, comment) = match guards::check(&self.cx, self.low) {
                Ok((result, comment)) => (result, comment.to_owned()),
                Err(error) => (false, returns::error_text(&error)),
            };
            ret.insert("result", result);
            ret.insert("comment", comment);
            // `raw` shows fields in the order they came, and after a check these two come first.
            for key in ["__sls__", "__id__"] {
                ret.insert(key, self.low.get(key));
            }
        }
        ret
    }

    fn act(&self, test: bool) -> Result<Dict, Error> {
        if let Some(verdict) = guards::ask(&self.cx, self.low)?.filter(|verdict| verdict.skip) {
            return Ok(returns::not_wanted(self.low, &verdict.comment));
        }
        let outcome = if self.caller.options.mock {
            let keys = Keys(["name", "comment", "changes", "result"]);
            Outcome::new(Some(true), Dict::new(), "Not called, mocked").with_keys(keys)
        } else {
            let call = slots::fill(&self.cx, self.arguments())?;
            let masked = super::umask(self.low).and_then(|mask| self.cx.host.with_umask(mask));
            let masked = masked.map(|host| Cx { host, ..self.cx.clone() });
            let (states, cx) = (&self.caller.states, masked.as_ref().unwrap_or(&self.cx));
            if self.watches {
                states.watch(cx, &self.state, call, test)?
            } else {
                states.run(cx, &self.state, call, test)?
            }
        };
        Ok(outcome.to_value(&self.name()))
    }

    /// Tells whether a beacon is asked for instead of the state itself.
    pub(super) fn is_beacon(&self) -> bool {
        self.state.ends_with(".mod_beacon")
    }

    pub(super) fn declares(&self, word: &str) -> bool {
        self.params.names.iter().any(|own| own == word)
    }

    /// The arguments of the chunk: declared ones, and others that are not the engine's.
    fn arguments(&self) -> Call {
        let kwargs = Dict::new();
        for (word, value) in self.low {
            let name = word.to_str();
            // A beacon is told which function asks for it, and whether it really does.
            let free = !keywords::is_engine_keyword(&name)
                || keywords::is_shared(&name)
                || (self.is_beacon() && matches!(&*name, "sfun" | "beacon"));
            if self.declares(&name) || (self.params.open && free) {
                kwargs.insert(word, value);
            }
        }
        Call { args: Vec::new(), kwargs }
    }

    /// Loads anew what the author asks for, and modules that the state may have brought.
    fn refresh(&self, ret: &Dict) {
        let asks = |word: &str| is_set(self.low, word);
        let modules = asks("force_reload_modules")
            || returns::has_changes(ret) && (asks("reload_modules") || self.may_bring_modules());
        let wanted = [
            (asks("reload_grains"), Refresh::Grains),
            (asks("reload_pillar"), Refresh::Pillar { fresh: false }),
            (modules, Refresh::Modules),
        ];
        for (_, what) in wanted.into_iter().filter(|(asked, _)| *asked) {
            let cx = &self.caller.cx;
            if let Err(error) = cx.runtime.refresh(cx, what) {
                tracing::warn!("refreshing {what:?} failed: {error}");
            }
        }
    }

    fn may_bring_modules(&self) -> bool {
        let [state, fun, name] = ["state", "fun", "name"].map(|key| text(self.low, key));
        match (state.as_str(), fun.as_str()) {
            ("pkg" | "ports" | "pip", _) | ("file", "recurse") => true,
            ("file", "symlink") => name.contains("bin"),
            ("file", "managed") => {
                [".py", ".pyx", ".pyo", ".pyc", ".so"].iter().any(|end| name.ends_with(end))
            }
            _ => false,
        }
    }
}
