//! A state: observe, plan, apply.
//!
//! `observe` is handed a context that cannot write, `plan` is pure, and [`run`] is the one place
//! where `test=True` is decided. What a plan predicts and what `apply` did are told apart: `apply`
//! may correct the changes and the comment, when they are only known afterwards.

use halite_value::{Dict, Value};

use crate::{Args, Binder, Call, Cx, Error, Param, Result, args::Unknown};

/// A state function: `file.absent`.
pub trait State: Args {
    /// What `observe` found out.
    type Seen;

    /// The state cannot tell beforehand whether it changes anything (`cmd.run`): its plan is never
    /// empty, and a second run repeats it.
    const REPEATS: bool = false;

    /// `watch` does something beyond running again.
    const WATCHES: bool = false;

    /// The order of the keys in its return, where Salt's has another than most.
    const KEYS: Keys = Keys::USUAL;

    /// The same after something was changed.
    const KEYS_APPLIED: Keys = Self::KEYS;

    /// Looks at the machine. The context refuses every change.
    fn observe(&self, cx: &Cx) -> Result<Self::Seen>;

    /// Says what has to change.
    fn plan(&self, seen: &Self::Seen) -> Result<Plan>;

    /// Changes it. Called only when the plan is not empty and this is no test.
    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied>;

    /// With `test=True`, for the few states whose author names something harmless to run instead
    /// of a prediction (`cmd.run` with `test_name`). `None`: the plan answers.
    fn rehearse(&self, cx: &Cx) -> Result<Option<Outcome>> {
        let _ = cx;
        Ok(None)
    }

    /// What keeps it from being begun, although a test does not tell: an owner whom an earlier state
    /// may be about to make. Asked before anything is looked at.
    fn refusal(&self, cx: &Cx) -> Result<Option<String>> {
        let _ = cx;
        Ok(None)
    }

    /// Salt's `mod_watch`: a watched state changed, and this one did nothing by itself.
    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let _ = (cx, test);
        Err(Error::failed("this state has no watch action"))
    }
}

/// A state that does nothing by itself and something when a state it watches changes: `cmd.wait`.
pub trait Watcher: Args {
    /// Does it, or says what would be done.
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome>;
}

impl<W: Watcher> State for W {
    type Seen = ();
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::nothing(""))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        self.fired(cx, test)
    }
}

/// What has to change.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// As Salt's `changes`; empty when nothing has to change.
    pub changes: Dict,
    /// There is something to do although no change can be named beforehand.
    pub unknown: bool,
    /// The comment of `test=True` (or of a state already right).
    pub pending: String,
    /// The comment once applied; of an empty plan, the comment without `test=True`, if it differs.
    pub done: String,
    /// The result of `test=True`; None as in Salt unless set.
    pub test_result: Option<bool>,
    /// Shown as warnings with the result.
    pub warnings: Vec<String>,
    /// Further keys of the state's return, as [`Applied::extra`]; whether applied or not.
    pub extra: Dict,
}

impl Plan {
    /// Everything is as it should be.
    pub fn nothing(comment: impl Into<String>) -> Self {
        Self { pending: comment.into(), ..Self::default() }
    }

    /// One change: `changes: {key: value}`.
    pub fn change(key: impl Into<halite_value::Key>, value: impl Into<Value>) -> Self {
        Self::default().and(key, value)
    }

    /// All of these changes.
    pub fn changes(changes: Dict) -> Self {
        Self { changes, ..Self::default() }
    }

    /// Something is to be done, and nobody can say what it changes.
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    #[must_use]
    pub fn and(self, key: impl Into<halite_value::Key>, value: impl Into<Value>) -> Self {
        self.changes.insert(key, value);
        self
    }

    /// The comment of `test=True`.
    #[must_use]
    pub fn pending(mut self, comment: impl Into<String>) -> Self {
        self.pending = comment.into();
        self
    }

    /// The comment once applied.
    #[must_use]
    pub fn done(mut self, comment: impl Into<String>) -> Self {
        self.done = comment.into();
        self
    }

    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.unknown
    }
}

/// What applying really did, where that differs from the plan.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    pub changes: Option<Dict>,
    pub comment: Option<String>,
    /// `Some(false)`: it went wrong, but this much was changed.
    pub result: Option<bool>,
    /// Further keys of the state's return (`warnings`, `skip_watch`, `sub_state_run` …).
    pub extra: Dict,
}

impl Applied {
    /// The plan came true.
    pub fn as_planned() -> Self {
        Self::default()
    }

    /// The plan came true if it was done; otherwise this is why not.
    pub fn if_done(done: bool, failure: impl FnOnce() -> String) -> Result<Self> {
        if done { Ok(Self::as_planned()) } else { Err(Error::failed(failure())) }
    }

    pub fn changes(changes: Dict) -> Self {
        Self { changes: Some(changes), ..Self::default() }
    }

    #[must_use]
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// It failed after changing this much (nothing, unless [`Applied::changes`] said otherwise).
    pub fn failed(changes: Dict, comment: impl Into<String>) -> Self {
        Self {
            changes: Some(changes),
            comment: Some(comment.into()),
            result: Some(false),
            extra: Dict::new(),
        }
    }
}

/// The return of one state, as Salt's `{name, result, changes, comment}`.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// None: would change (`test=True`).
    pub result: Option<bool>,
    pub changes: Dict,
    pub comment: String,
    pub warnings: Vec<String>,
    pub extra: Dict,
    pub keys: Keys,
}

/// The order of the four keys every return has: programs see it in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys(pub [&'static str; 4]);

impl Keys {
    pub const USUAL: Self = Self(["name", "changes", "result", "comment"]);
    /// Of a state that could not be called.
    pub const NOT_CALLED: Self = Self(["result", "name", "changes", "comment"]);
    /// Of a state on a thread of its own.
    pub const PARALLEL: Self = Self(["name", "result", "changes", "comment"]);

    /// The order they have in a return.
    pub fn of(ret: &Dict) -> Self {
        let mut keys = Self::USUAL;
        keys.0.sort_by_key(|key| ret.keys().iter().position(|own| **own == **key));
        keys
    }

    /// Puts them first and in this order.
    pub fn arranged(self, ret: &Dict) -> Dict {
        let first = self.0.into_iter().filter_map(|key| Some((key, ret.get(key)?)));
        let all = Dict::with_capacity(ret.len());
        first.for_each(|(key, value)| {
            all.insert(key, value);
        });
        all.update(ret);
        all
    }
}

impl Outcome {
    pub fn new(result: Option<bool>, changes: Dict, comment: impl Into<String>) -> Self {
        let (warnings, extra) = (Vec::new(), Dict::new());
        Self { result, changes, comment: comment.into(), warnings, extra, keys: Keys::USUAL }
    }

    /// Orders the keys of the return.
    #[must_use]
    pub fn with_keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// A failure that changed nothing.
    pub fn failed(comment: impl Into<String>) -> Self {
        Self::new(Some(false), Dict::new(), comment)
    }

    /// The dict of Salt's return.
    pub fn to_value(&self, name: &Value) -> Dict {
        // With what the engine adds.
        let ret = Dict::with_capacity(10 + self.extra.len());
        for key in self.keys.0 {
            match key {
                "name" => ret.insert(key, name),
                "changes" => ret.insert(key, &self.changes),
                "result" => ret.insert(key, self.result),
                _ => ret.insert(key, self.comment.as_str()),
            };
        }
        ret.update(&self.extra);
        if !self.warnings.is_empty() {
            ret.insert("warnings", Value::list(self.warnings.clone()));
        }
        ret
    }
}

/// Runs one state. The only place where `test=True` is decided.
pub fn run<S: State>(state: &S, cx: &Cx, test: bool) -> Result<Outcome> {
    if test && let Some(outcome) = state.rehearse(cx)? {
        return Ok(outcome.with_keys(S::KEYS));
    }
    if !test && let Some(why) = state.refusal(&cx.looking_only())? {
        return Err(Error::failed(why));
    }
    let seen = state.observe(&cx.looking_only())?;
    let plan = state.plan(&seen)?;
    let mut outcome = if plan.is_empty() {
        let comment = if test || plan.done.is_empty() { plan.pending } else { plan.done };
        Outcome::new(Some(true), Dict::new(), comment).with_keys(S::KEYS)
    } else if test {
        Outcome::new(plan.test_result, plan.changes, plan.pending).with_keys(S::KEYS)
    } else {
        let applied = state.apply(cx, seen)?;
        Outcome {
            extra: applied.extra,
            keys: S::KEYS_APPLIED,
            ..Outcome::new(
                Some(applied.result.unwrap_or(true)),
                applied.changes.unwrap_or(plan.changes),
                applied.comment.unwrap_or(plan.done),
            )
        }
    };
    outcome.warnings.extend(plan.warnings);
    for (key, value) in &plan.extra {
        if !outcome.extra.contains(&key) {
            outcome.extra.insert(key, value);
        }
    }
    Ok(outcome)
}

/// Runs a state's watch action.
pub type Watch = fn(&Cx, Call, bool) -> Result<Outcome>;

/// A state function in the registry.
#[derive(Debug)]
pub struct StateFn {
    /// Without the module: `absent`.
    pub name: &'static str,
    pub doc: fn() -> &'static str,
    pub params: fn() -> &'static [Param],
    /// Salt's takes any keyword beside these.
    pub open: bool,
    /// Binds and runs; returns the names no argument has beside the outcome.
    pub run: fn(&Cx, Call, bool) -> Result<(Outcome, Unknown)>,
    pub watch: Option<Watch>,
    pub repeats: bool,
    pub keys: Keys,
}

impl StateFn {
    pub const fn of<S: State>(name: &'static str) -> Self {
        Self {
            name,
            doc: || S::DOC,
            params: || S::PARAMS,
            open: S::OPEN,
            run: |cx, call, test| {
                let (state, unknown) = bind::<S>(call)?;
                run(&state, cx, test).map(|outcome| (outcome, unknown))
            },
            watch: if S::WATCHES {
                Some(|cx, call, test| bind::<S>(call)?.0.watch(cx, test))
            } else {
                None
            },
            repeats: S::REPEATS,
            keys: S::KEYS,
        }
    }
}

fn bind<S: State>(call: Call) -> Result<(S, Unknown)> {
    let mut binder = Binder::new(call, S::PARAMS);
    let state = S::bind(&mut binder)?;
    Ok((state, binder.unknown()))
}

/// Lets several states of one module be joined into one (`pkg.installed` into one transaction):
/// given a low chunk and those still to come, returns the chunk to run.
pub type Aggregate = fn(low: &Dict, rest: &[Dict]) -> Dict;

/// A state module: a file of states.
#[derive(Debug)]
pub struct StateModule {
    pub name: &'static str,
    pub doc: &'static str,
    pub states: &'static [StateFn],
    pub aggregate: Option<Aggregate>,
    /// What it cannot do without on a machine.
    pub needs: &'static [crate::Need],
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_the_state() {
        let keys = Keys(["changes", "comment", "name", "result"]);
        let outcome = Outcome::new(Some(true), Dict::new(), "done").with_keys(keys);
        let ret = outcome.to_value(&"x".into());
        assert_eq!(Keys::of(&ret), keys);
        ret.insert("__id__", "x");
        let told = Value::from(Keys::PARALLEL.arranged(&ret)).to_string();
        let wanted =
            "{'name': 'x', 'result': True, 'changes': {}, 'comment': 'done', '__id__': 'x'}";
        assert_eq!(told, wanted);
    }

    #[test]
    fn what_lacks_a_key_has_an_order_too() {
        let ret = entries! { "comment" => "c", "name" => "n" };
        assert_eq!(Keys::of(&ret).0[2..], ["comment", "name"]);
        assert_eq!(
            Value::from(Keys::USUAL.arranged(&ret)).to_string(),
            "{'name': 'n', 'comment': 'c'}"
        );
    }
}
