//! Requisites at run time: may a step run, after what others did?
//!
//! The returns of the states a step names are counted, one [`Tally`] for each kind of requisite.
//! Each kind turns its tally into a [`Gate`], open or closed, and the severest gate decides. The
//! truth table of all kinds is the test at the foot of this file.
//!
//! Kinds do not judge quite alone. A state that asks for it (`skip_req`) keeps those that would
//! run *because* it changed from doing so, whatever kind they name it by; and a change seen by both
//! `onchanges` and `watch` outweighs an `onfail` without a failure. Both are Salt's rules.

use std::cmp::Ordering;

use halite_value::{Dict, Value};

use super::returns;
use crate::keywords::{REQUISITES, Requisite};

/// What the requisites of a step say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Run, and let the watch action follow: a watched state changed.
    OpenWithWatch,
    /// Run, but no watch action: the state that changed asks for none.
    OpenWithoutWatch,
    /// Run, whatever milder gates say: of several `prereq` states some would change.
    OpenAnyway,
    Closed(Why),
}

/// Why a step does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// No state of an `onchanges` changed.
    Unchanged,
    /// No state of an `onfail` failed.
    NoFailure,
    /// No state of a `prereq` would change.
    NothingAhead,
    /// The state that would have been the reason asks to be none.
    Skipped,
    Failed,
}

/// All gates, from the mildest to the severest.
const SEVERITY: [Gate; 9] = [
    Gate::Open,
    Gate::OpenWithWatch,
    Gate::Closed(Why::Unchanged),
    Gate::Closed(Why::NoFailure),
    Gate::Closed(Why::NothingAhead),
    Gate::OpenAnyway,
    Gate::OpenWithoutWatch,
    Gate::Closed(Why::Skipped),
    Gate::Closed(Why::Failed),
];

impl Gate {
    fn severity(self) -> usize {
        SEVERITY.iter().position(|gate| *gate == self).unwrap_or(SEVERITY.len())
    }

    fn closed_if(closed: bool, why: Why) -> Self {
        if closed { Self::Closed(why) } else { Self::Open }
    }
}

impl Ord for Gate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.severity().cmp(&other.severity())
    }
}

impl PartialOrd for Gate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Why {
    /// The result of a state that did not run, and what it says.
    pub(super) fn says(self) -> (bool, &'static str) {
        match self {
            Self::Failed => (false, "One or more requisite failed: "),
            Self::Skipped => {
                (true, "State was not run because requisites were skipped by another state")
            }
            Self::NothingAhead => (true, "No changes detected"),
            Self::NoFailure => (true, "State was not run because onfail req did not change"),
            Self::Unchanged => {
                (true, "State was not run because none of the onchanges reqs changed")
            }
        }
    }
}

/// What the states named by one kind of requisite did. A state counts in each field it fits.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    asked: usize,
    succeeded: usize,
    failed: usize,
    /// Did not fail, and changed something.
    changed: usize,
    /// Would change something: neither success nor failure yet.
    would_change: usize,
    /// Ran, and did not fail.
    ran_well: usize,
    /// Ran, and did not succeed.
    ran_in_vain: usize,
    /// Asks not to be a reason for others to run.
    skips: usize,
}

impl Tally {
    fn count(&mut self, ret: &Dict) {
        let result = ret.get("result").unwrap_or_default();
        let (succeeded, failed) = (result == Value::Bool(true), result == Value::Bool(false));
        let ran = ret.get("__state_ran__").is_none_or(|ran| ran.truthy());
        self.asked += 1;
        self.succeeded += usize::from(succeeded);
        self.failed += usize::from(failed);
        self.changed += usize::from(!failed && returns::has_changes(ret));
        self.would_change += usize::from(result.is_null());
        self.ran_well += usize::from(ran && !failed);
        self.ran_in_vain += usize::from(ran && !succeeded);
        self.skips += usize::from(returns::is_set(ret, "skip_req"));
    }
}

/// The tallies of a step, by the kind of requisite.
#[derive(Default)]
pub(super) struct Evidence([Tally; REQUISITES.len()]);

impl Evidence {
    pub(super) fn add(&mut self, kind: Requisite, ret: &Dict) {
        self.0[kind as usize].count(ret);
    }

    /// Returns the severest gate of all.
    pub(super) fn gate(&self) -> Gate {
        let by_kind = REQUISITES.into_iter().map(|kind| self.gate_of(kind));
        by_kind.fold(self.skipping(), Gate::max)
    }

    fn gate_of(&self, kind: Requisite) -> Gate {
        let tally = &self.0[kind as usize];
        match kind {
            Requisite::Require => Self::require(tally),
            Requisite::RequireAny => Self::require_any(tally),
            Requisite::Watch => Self::require(tally).max(Self::watch(tally)),
            Requisite::WatchAny => Self::watch_any(tally),
            Requisite::Prereq => Self::prereq(tally),
            Requisite::Onfail | Requisite::OnfailAny => self.onfail_any(tally),
            Requisite::OnfailAll => self.onfail_all(tally),
            Requisite::Onchanges | Requisite::OnchangesAny => self.onchanges(),
        }
    }

    fn require(tally: &Tally) -> Gate {
        Gate::closed_if(tally.failed > 0, Why::Failed)
    }

    fn require_any(tally: &Tally) -> Gate {
        Gate::closed_if(tally.failed > 0 && tally.ran_well == 0, Why::Failed)
    }

    fn watch(tally: &Tally) -> Gate {
        if tally.changed > 0 { Gate::OpenWithWatch } else { Gate::Open }
    }

    fn watch_any(tally: &Tally) -> Gate {
        match Self::watch(tally) {
            Gate::Open => Self::require_any(tally),
            changed => changed,
        }
    }

    fn prereq(tally: &Tally) -> Gate {
        let idle = tally.asked - tally.failed - tally.would_change;
        match (tally.failed, tally.would_change, idle) {
            (1.., ..) => Gate::Closed(Why::Failed),
            (0, _, 0) => Gate::Open,
            (0, 0, _) => Gate::Closed(Why::NothingAhead),
            (0, ..) => Gate::OpenAnyway,
        }
    }

    /// Plain `onfail` is `onfail_any`. A target that did not run at all decides nothing.
    fn onfail_any(&self, tally: &Tally) -> Gate {
        let quiet = tally.succeeded > 0 && tally.ran_in_vain == 0;
        Gate::closed_if(quiet && !self.is_outweighed(), Why::NoFailure)
    }

    fn onfail_all(&self, tally: &Tally) -> Gate {
        Gate::closed_if(tally.succeeded > 0 && !self.is_outweighed(), Why::NoFailure)
    }

    /// One change is enough, in either list: plain `onchanges` is `onchanges_any`.
    fn onchanges(&self) -> Gate {
        let kinds = [Requisite::Onchanges, Requisite::OnchangesAny];
        let asked = kinds.iter().any(|kind| self.0[*kind as usize].asked > 0);
        Gate::closed_if(asked && !self.has_changed(kinds), Why::Unchanged)
    }

    /// A change that both `onchanges` and `watch` see runs the state though nothing failed.
    fn is_outweighed(&self) -> bool {
        self.has_changed([Requisite::Onchanges, Requisite::OnchangesAny])
            && self.has_changed([Requisite::Watch, Requisite::WatchAny])
    }

    /// `skip_req` takes the reason away from whoever would run for one.
    fn skipping(&self) -> Gate {
        let would_change = self.0[Requisite::Prereq as usize].would_change > 0;
        if self.0.iter().all(|tally| tally.skips == 0) {
            Gate::Open
        } else if would_change || self.has_changed([Requisite::Onchanges, Requisite::OnchangesAny])
        {
            Gate::Closed(Why::Skipped)
        } else if self.has_changed([Requisite::Watch, Requisite::WatchAny]) {
            Gate::OpenWithoutWatch
        } else {
            Gate::Open
        }
    }

    fn has_changed(&self, kinds: [Requisite; 2]) -> bool {
        kinds.iter().any(|kind| self.0[*kind as usize].changed > 0)
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries};

    use super::*;

    /// Outcomes of a target, one letter each.
    fn outcome(letter: char) -> Dict {
        let (result, changes) = match letter {
            'c' | 'k' => (Value::Bool(true), dict! { "new" => 1 }),
            's' | 'x' => (Value::Bool(true), Value::dict()),
            'f' | 'y' => (Value::Bool(false), Value::dict()),
            'g' => (Value::Bool(false), dict! { "new" => 1 }),
            'w' => (Value::Null, dict! { "new" => 1 }),
            'n' => (Value::Null, Value::dict()),
            other => panic!("no outcome `{other}`"),
        };
        let ret = entries! { "result" => result, "changes" => changes };
        match letter {
            'x' | 'y' => drop(ret.insert("__state_ran__", false)),
            'k' => drop(ret.insert("skip_req", true)),
            _ => {}
        }
        ret
    }

    fn gate_of(requisites: &[(Requisite, &str)]) -> Gate {
        let mut evidence = Evidence::default();
        for (kind, outcomes) in requisites {
            outcomes.chars().for_each(|letter| evidence.add(*kind, &outcome(letter)));
        }
        evidence.gate()
    }

    /// Open gates are small letters (but with its watch action), closed ones capitals.
    fn letter(gate: Gate) -> char {
        match gate {
            Gate::Open => 'o',
            Gate::OpenWithWatch => 'W',
            Gate::OpenWithoutWatch => 'w',
            Gate::OpenAnyway => 'a',
            Gate::Closed(Why::Failed) => 'F',
            Gate::Closed(Why::Skipped) => 'S',
            Gate::Closed(Why::NothingAhead) => 'P',
            Gate::Closed(Why::NoFailure) => 'N',
            Gate::Closed(Why::Unchanged) => 'U',
        }
    }

    /// Kind of requisite × outcomes of the states it names.
    ///
    /// Outcomes: `c`hanged; changed but wants to be s`k`ipped; `s`ucceeded; was not run and
    /// succeeded (`x`) or failed (`y`); `f`ailed; failed with chan`g`es; `w`ould change; `n`either.
    #[test]
    fn truth_table() {
        use Requisite as R;
        let targets = "- c k s x f y g w n cf sf xf xy cs ws wk";
        let table = [
            (R::Require, "o o o o o F F F o o F  F  F  F  o  o  o"),
            (R::RequireAny, "o o o o o F F F o o o  o  F  F  o  o  o"),
            (R::Watch, "o W w o o F F F W o F  F  F  F  W  W  w"),
            (R::WatchAny, "o W w o o F F F W o W  o  F  F  W  W  w"),
            (R::Prereq, "o P P P P F F F o o F  F  F  F  P  a  S"),
            (R::Onfail, "o N N N N o o o o o o  o  o  N  N  o  o"),
            (R::OnfailAny, "o N N N N o o o o o o  o  o  N  N  o  o"),
            (R::OnfailAll, "o N N N N o o o o o N  N  N  N  N  N  N"),
            (R::Onchanges, "o o S U U U U U o U o  U  U  U  o  o  S"),
            (R::OnchangesAny, "o o S U U U U U o U o  U  U  U  o  o  S"),
        ];
        assert_eq!(table.map(|(kind, _)| kind), REQUISITES);
        for (kind, expected) in table {
            let targets = targets.split_whitespace().map(|outcomes| outcomes.trim_matches('-'));
            let gates = targets.map(|outcomes| letter(gate_of(&[(kind, outcomes)])));
            let expected = expected.split_whitespace().collect::<String>();
            assert_eq!(gates.collect::<String>(), expected, "{kind:?}");
        }
    }

    #[test]
    fn kinds_together() {
        use Requisite as R;
        let check = |requisites: &[(R, &str)], expected: Gate| {
            assert_eq!(gate_of(requisites), expected, "{requisites:?}");
        };
        check(&[(R::Require, "f"), (R::Watch, "c")], Gate::Closed(Why::Failed));
        check(&[(R::Onchanges, "s"), (R::OnchangesAny, "c")], Gate::Open);
        check(&[(R::Onchanges, "s"), (R::Watch, "c")], Gate::Closed(Why::Unchanged));
        check(&[(R::Onfail, "s"), (R::Watch, "c")], Gate::Closed(Why::NoFailure));
        check(&[(R::Onfail, "s"), (R::OnfailAny, "f")], Gate::Closed(Why::NoFailure));
        check(&[(R::Onfail, "s"), (R::Onchanges, "c")], Gate::Closed(Why::NoFailure));
        check(&[(R::Onfail, "s"), (R::Onchanges, "c"), (R::Watch, "c")], Gate::OpenWithWatch);
        check(&[(R::Prereq, "ws"), (R::Watch, "c")], Gate::OpenAnyway);
        check(&[(R::Prereq, "w"), (R::Watch, "c")], Gate::OpenWithWatch);
        check(&[(R::Require, "k"), (R::Onchanges, "c")], Gate::Closed(Why::Skipped));
        check(&[(R::Require, "k"), (R::Watch, "c")], Gate::OpenWithoutWatch);
        check(&[(R::Require, "k"), (R::Prereq, "s")], Gate::Closed(Why::NothingAhead));
        check(&[(R::Prereq, "s"), (R::Onfail, "s")], Gate::Closed(Why::NothingAhead));
    }

    #[test]
    fn every_gate_has_a_severity() {
        assert!(SEVERITY.is_sorted());
        assert!(SEVERITY.iter().all(|gate| gate.severity() < SEVERITY.len()));
    }
}
