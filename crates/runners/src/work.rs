//! A job on minions as a step: at once, on some of them, or on a few at a time; and who of them may
//! fail.

use std::time::Duration;

use halite_client::{Job, Outcome as JobOutcome, Patience, Request};
use halite_spec::{Call, Cx, Error, Result};
use halite_value::{Dict, SmolStr, Value, entries};

use crate::{master, steps::Step};

/// A job on minions, as the two kinds of steps share it.
pub(crate) struct Work<'a> {
    pub(crate) tgt: &'a Value,
    pub(crate) tgt_type: &'a str,
    pub(crate) fun: &'a str,
    pub(crate) arg: Vec<Value>,
    pub(crate) kwarg: Dict,
    pub(crate) ret: Option<&'a Value>,
    pub(crate) ret_config: Option<&'a Value>,
    pub(crate) ret_kwargs: Option<&'a Value>,
    pub(crate) timeout: Option<f64>,
    pub(crate) batch: Option<&'a Value>,
    pub(crate) subset: Option<i64>,
}

/// What a job gave.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Who was meant.
    pub(crate) minions: Vec<SmolStr>,
    pub(crate) returned: Vec<(SmolStr, Dict)>,
    pub(crate) missing: Vec<SmolStr>,
    pub(crate) jid: SmolStr,
}

impl Gathered {
    fn add(&mut self, outcome: JobOutcome) {
        if self.jid.is_empty() {
            self.jid = outcome.published.jid.clone();
        }
        self.minions.extend(outcome.published.minions.iter().cloned());
        // All parts of a batch have one job id: who was given up may return in a later part.
        self.missing.retain(|id| !outcome.returned.iter().any(|(late, _)| late == id));
        // Names of a list that nobody has are meant all the same.
        for id in &outcome.published.missing {
            if !self.missing.contains(id) {
                self.missing.push(id.clone());
            }
        }
        let is_known = |id: &SmolStr, all: &[(SmolStr, Dict)]| all.iter().any(|(own, _)| own == id);
        for (id, load) in outcome.returned {
            if !is_known(&id, &self.returned) {
                self.returned.push((id, load));
            }
        }
        self.missing.extend(outcome.missing.into_iter().map(|(id, _)| id));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.returned.is_empty() && self.missing.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.returned.len() + self.missing.len()
    }
}

impl Work<'_> {
    fn job(&self, cx: &Cx) -> Job {
        let mut arg = self.arg.clone();
        if !self.kwarg.is_empty() {
            let kwarg = self.kwarg.shallow_copy();
            kwarg.insert("__kwarg__", true);
            arg.push(kwarg.into());
        }
        let kwargs = Dict::new();
        for (name, value) in [("ret_config", self.ret_config), ("ret_kwargs", self.ret_kwargs)] {
            if let Some(value) = value.filter(|value| value.truthy()) {
                kwargs.insert(name, value);
            }
        }
        let ret = match self.ret {
            Some(list @ (Value::List(_) | Value::Tuple(_))) => {
                let names = list.items_of_sequence().unwrap_or_default();
                names.iter().map(Value::to_string).collect::<Vec<_>>().join(",").into()
            }
            Some(Value::Null) | None => SmolStr::default(),
            Some(one) => one.to_str(),
        };
        Job {
            arg,
            ret,
            kwargs,
            user: cx.job.user.clone(),
            ..Job::new(self.tgt.clone(), self.tgt_type, self.fun)
        }
    }

    fn patience(&self, cx: &Cx) -> Patience {
        let mut patience = Patience::from_opts(&cx.opts);
        if let Some(timeout) = self.timeout.filter(|seconds| *seconds > 0.0 && *seconds < 1e9) {
            patience.timeout = Duration::from_secs_f64(timeout);
        }
        patience
    }

    /// Tells, in an event `args` of the orchestration, what a step is about to do.
    pub(crate) fn announce(&self, cx: &Cx, kind: &str, name: &str, expect: bool) {
        let args = entries! {
            "arg" => self.arg.clone(), "kwarg" => &self.kwarg,
            "ret" => self.ret.cloned().unwrap_or_else(|| "".into()), "timeout" => self.timeout,
        };
        if let Some(subset) = self.subset {
            args.insert("subset", subset);
        }
        args.insert("tgt_type", self.tgt_type);
        args.insert("ssh", false);
        args.insert("expect_minions", expect);
        if let Some(batch) = self.batch {
            args.insert("batch", batch);
        }
        if kind == "function" {
            args.insert("_cmd_meta", true);
        }
        let data = entries! { "type" => kind, "tgt" => self.tgt, "name" => name, "args" => args };
        if let Err(error) = master::tell(cx, "args", data) {
            tracing::debug!("nobody heard of the step: {error}");
        }
    }

    /// Runs the function on this machine, as the one minion there is.
    pub(crate) fn run_here(&self, cx: &Cx) -> Result<Gathered> {
        let call = Call { args: self.arg.clone(), kwargs: self.kwarg.shallow_copy() };
        let id = cx.id();
        let load = entries! { "return" => cx.call(self.fun, call)? };
        Ok(Gathered {
            minions: vec![id.clone()],
            returned: vec![(id, load)],
            ..Gathered::default()
        })
    }

    /// Runs the job: at once, on some, or on a few at a time.
    pub(crate) fn run(&self, cx: &Cx, step: &mut Step) -> Result<Gathered> {
        let (job, patience) = (self.job(cx), self.patience(cx));
        let mut all = Gathered::default();
        if self.batch.is_none() && self.subset.is_none() {
            all.add(step.run(&job, patience)?);
            if all.jid.is_empty() {
                master::say(cx, master::NOBODY)?;
            }
            return Ok(all);
        }
        let load = entries! { "tgt" => self.tgt, "tgt_type" => self.tgt_type };
        let found = master::ask(cx, &Request::Ask { what: "resolve".into(), load })?;
        let list = |name: &str| -> Vec<SmolStr> {
            let ids = found.get(name).and_then(|ids| ids.items_of_sequence()).unwrap_or_default();
            ids.iter().map(Value::to_str).collect()
        };
        let mut open = list("minions");
        all.missing = list("missing");
        if let Some(subset) = self.subset {
            open = choose(open, &list("connected"), usize::try_from(subset).unwrap_or(0));
        }
        let size = match self.batch {
            Some(batch) => batch_size(batch, open.len())?,
            None => open.len().max(1),
        };
        // An earlier master may have begun it: the job knows whom it was given to.
        let mut wave = step.resumed_minions();
        while !open.is_empty() {
            let wave =
                wave.take().unwrap_or_else(|| open.iter().take(size).cloned().collect::<Vec<_>>());
            open.retain(|id| !wave.contains(id));
            let part = Job { tgt: Value::list(&wave), tgt_type: "list".into(), ..job.clone() };
            if all.jid.is_empty() {
                all.add(step.run(&part, patience)?);
            } else {
                let part = Job { jid: all.jid.clone(), ..part };
                all.add(step.run_more(&part, patience)?);
            }
        }
        if self.batch.is_some() {
            // Salt names no job of a batch.
            all.jid = SmolStr::default();
        }
        Ok(all)
    }
}

/// Chooses some, those that are there first.
fn choose(ids: Vec<SmolStr>, connected: &[SmolStr], count: usize) -> Vec<SmolStr> {
    use std::hash::{BuildHasher as _, RandomState};
    let chance = RandomState::new();
    let mut ids = ids;
    ids.sort_by_key(|id| (!connected.contains(id), chance.hash_one(id)));
    ids.truncate(count);
    ids
}

/// Reads `3` or `25%`.
fn batch_size(batch: &Value, count: usize) -> Result<usize> {
    let text = batch.to_str();
    let wrong = || Error::failed(format!("batch: `{text}` is neither a number nor a percentage"));
    let size = match text.trim().strip_suffix('%') {
        Some(percent) => {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            ((count as f64) * percent / 100.0) as usize
        }
        None => text.trim().parse().map_err(|_| wrong())?,
    };
    Ok(size.max(1))
}

/// Who may fail.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Allowed {
    pub(crate) names: Vec<String>,
    pub(crate) count: usize,
    /// `fail_minions` says nothing that can be used.
    pub(crate) unusable: bool,
}

impl Allowed {
    /// Reads `fail_minions` (names, a number, a percentage) and `allow_fail` for this many minions.
    pub(crate) fn read(fail_minions: Option<&Value>, allow_fail: i64, count: usize) -> Self {
        let mut allowed =
            Self { count: usize::try_from(allow_fail).unwrap_or(0), ..Self::default() };
        match fail_minions {
            None | Some(Value::Null) => {}
            Some(Value::Str(text)) => {
                let text = text.trim();
                if let Some(percent) =
                    text.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok())
                {
                    allowed.count = allowed.count.max(((count as f64) * percent / 100.0) as usize);
                } else if let Ok(number) = text.parse::<usize>() {
                    allowed.count = allowed.count.max(number);
                } else {
                    allowed.names = text.split(',').map(|name| name.trim().to_owned()).collect();
                }
            }
            Some(number @ Value::Int(_)) => {
                let number = number.as_int().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                allowed.count = allowed.count.max(number);
            }
            Some(list) => match list.items_of_sequence() {
                Some(items) => allowed.names = items.iter().map(Value::to_string).collect(),
                None => allowed.unusable = true,
            },
        }
        allowed
    }

    /// Returns what the author of a step is to be told.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let text = "'fail_minions' needs to be a list or a comma separated string. Ignored.";
        self.unusable.then(|| text.to_owned()).into_iter().collect()
    }

    /// Takes out those who may fail by name; returns the others, and whether they are too many.
    pub(crate) fn judge(&self, failed: Vec<SmolStr>) -> (Vec<SmolStr>, bool) {
        let rest: Vec<SmolStr> =
            failed.into_iter().filter(|id| !self.names.iter().any(|own| own == id)).collect();
        let too_many = rest.len() > self.count;
        (rest, too_many)
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, list};

    use super::*;

    #[test]
    fn who_may_fail() {
        let read = |value: Value, count| Allowed::read(Some(&value), 0, count);
        assert_eq!(read("5%".into(), 100).count, 5);
        assert_eq!(read("5%".into(), 10).count, 0);
        assert_eq!(read("2".into(), 10).count, 2);
        assert_eq!(read(3.into(), 10).count, 3);
        assert_eq!(read("a,b".into(), 10).names, ["a", "b"]);
        for unusable in [true.into(), 1.5.into(), dict! { "a" => 1 }] {
            let allowed = read(unusable, 10);
            assert_eq!((allowed.count, allowed.warnings().len()), (0, 1));
        }
        assert!(read(0.into(), 10).warnings().is_empty());
        let (rest, bad) = read(list!["a"], 3).judge(vec!["a".into(), "b".into()]);
        assert_eq!((rest, bad), (vec![SmolStr::from("b")], true));
        assert!(!Allowed::read(None, 2, 3).judge(vec!["a".into(), "b".into()]).1);
    }

    #[test]
    fn batches() {
        assert_eq!(batch_size(&"25%".into(), 10).unwrap(), 2);
        assert_eq!(batch_size(&"1%".into(), 10).unwrap(), 1);
        assert_eq!(batch_size(&3.into(), 10).unwrap(), 3);
        assert!(batch_size(&"x".into(), 10).is_err());
    }
}
