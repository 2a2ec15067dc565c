//! From wishes to steps and edges: who goes before whom.
//!
//! A *step* is a chunk in one of two passes. Every chunk has its [`Pass::Apply`]; a chunk that some
//! `prereq` names has a [`Pass::Check`] as well, a run with `test=True` that tells whether there
//! is anything ahead. What a requisite means for these steps stands in two tables, [`AFTER`] and [`PREREQ`].
//!
//! A check comes into being with the first `prereq` that asks for it, and edges that end in a check
//! count from then on. That matters twice: edges keep the order of their making (a run's messages
//! follow it), and a chunk's own `prereq` binds its check only if the check was there before.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::keywords::Requisite;

/// The number of a step. Those of applying come first, numbered as their chunks.
pub(crate) type StepId = usize;

/// A chunk in one of its passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) chunk: usize,
    pub(super) pass: Pass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// With `test=True`, for a `prereq`.
    Check,
    Apply,
}

/// One chunk names another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) asker: usize,
    pub(super) kind: Requisite,
    pub(super) target: usize,
}

/// An end of an edge, from a wish's point of view.
#[derive(Clone, Copy)]
enum End {
    Asker(Pass),
    Target(Pass),
}

/// `first` goes before `then`, and `then` looks at `first` as `looks` says.
struct Rule {
    first: End,
    then: End,
    /// The requisite of the edge; `None`: the one that was written.
    looks: Option<Requisite>,
    /// A check that is asked for only later gets the edge too.
    reaches_later_checks: bool,
}

/// What a chunk waits for, its check waits for too.
const AFTER: [Rule; 2] = [
    Rule::new(End::Target(Pass::Apply), End::Asker(Pass::Check), None),
    Rule::new(End::Target(Pass::Apply), End::Asker(Pass::Apply), None),
];

/// Look whether the target would change; act; then let the target act.
const PREREQ: [Rule; 3] = [
    Rule::new(End::Target(Pass::Check), End::Asker(Pass::Apply), None),
    Rule::new(End::Asker(Pass::Apply), End::Target(Pass::Apply), Some(Requisite::Require)),
    Rule {
        reaches_later_checks: false,
        ..Rule::new(End::Target(Pass::Check), End::Asker(Pass::Check), None)
    },
];

impl Rule {
    const fn new(first: End, then: End, looks: Option<Requisite>) -> Self {
        Self { first, then, looks, reaches_later_checks: true }
    }
}

/// What a requisite means for the steps. Rules about a check that nobody asks for fall away.
fn rules(kind: Requisite) -> &'static [Rule] {
    if kind == Requisite::Prereq { &PREREQ } else { &AFTER }
}

/// Edges at one step: the other end and a requisite; all requisites between the same two together.
#[derive(Default)]
pub(super) struct Bundle(Box<[(u32, Requisite)]>);

impl Bundle {
    /// Returns the edges, one for each requisite.
    pub(super) fn edges(&self) -> impl Iterator<Item = (StepId, Requisite)> {
        self.0.iter().map(|(end, kind)| (*end as StepId, *kind))
    }

    /// Returns each other end once.
    pub(super) fn ends(&self) -> impl Iterator<Item = StepId> {
        self.0.chunk_by(|one, next| one.0 == next.0).map(|edges| edges[0].0 as StepId)
    }

    /// Returns the edge at a position.
    pub(super) fn get(&self, at: usize) -> Option<StepId> {
        self.0.get(at).map(|(end, _)| *end as StepId)
    }

    /// Returns the first requisite between this step and another.
    pub(super) fn first_with(&self, end: StepId) -> Option<Requisite> {
        self.edges().find(|(own, _)| *own == end).map(|(_, kind)| kind)
    }

    /// Bundles edges (step, other end, requisite) by their step; each keeps its place behind those
    /// that were made before it.
    fn tied(steps: usize, mut edges: Vec<(StepId, StepId, Requisite)>) -> Vec<Self> {
        edges.sort_by_key(|(step, ..)| *step);
        let mut bundles: Vec<Self> = (0..steps).map(|_| Self::default()).collect();
        for edges in edges.chunk_by(|one, next| one.0 == next.0) {
            let mut ends: IndexMap<StepId, Vec<Requisite>> = IndexMap::new();
            for (_, end, kind) in edges {
                let kinds = ends.entry(*end).or_default();
                if !kinds.contains(kind) {
                    kinds.push(*kind);
                }
            }
            let edge = |(end, kinds): (StepId, Vec<Requisite>)| {
                kinds.into_iter().map(move |kind| (end as u32, kind))
            };
            bundles[edges[0].0] = Self(ends.into_iter().flat_map(edge).collect());
        }
        bundles
    }
}

/// Steps, and the edges between them.
#[derive(Default)]
pub(super) struct Net {
    pub(super) steps: Vec<Step>,
    pub(super) into: Vec<Bundle>,
    pub(super) out: Vec<Bundle>,
    checks: HashMap<usize, Check>,
}

/// The check of a chunk.
#[derive(Clone, Copy)]
struct Check {
    step: StepId,
    /// The wish that first asked for it.
    since: usize,
}

/// An edge to be, and the wish from which on it counts.
struct Edge {
    since: usize,
    from: StepId,
    to: StepId,
    kind: Requisite,
}

impl Net {
    /// Makes the steps of so many chunks, and the edges that follow from the wishes.
    pub(super) fn new(chunks: usize, wishes: &[Wish]) -> Self {
        let steps = (0..chunks).map(|chunk| Step { chunk, pass: Pass::Apply }).collect();
        let mut net = Self { steps, ..Self::default() };
        for (since, wish) in wishes.iter().enumerate() {
            if wish.kind == Requisite::Prereq && !net.checks.contains_key(&wish.target) {
                net.checks.insert(wish.target, Check { step: net.steps.len(), since });
                net.steps.push(Step { chunk: wish.target, pass: Pass::Check });
            }
        }
        let mut edges: Vec<Edge> =
            wishes.iter().enumerate().flat_map(|(number, wish)| net.edges(number, wish)).collect();
        edges.sort_by_key(|edge| edge.since);
        let out = edges.iter().map(|edge| (edge.from, edge.to, edge.kind)).collect();
        net.out = Bundle::tied(net.steps.len(), out);
        let into = edges.iter().map(|edge| (edge.to, edge.from, edge.kind)).collect();
        net.into = Bundle::tied(net.steps.len(), into);
        net
    }

    fn edges(&self, number: usize, wish: &Wish) -> Vec<Edge> {
        let edge = |rule: &Rule| {
            let (from, _) = self.end(rule.first, wish)?;
            let (to, exists_since) = self.end(rule.then, wish)?;
            let later = exists_since > number;
            (rule.reaches_later_checks || !later).then(|| Edge {
                since: number.max(exists_since),
                from,
                to,
                kind: rule.looks.unwrap_or(wish.kind),
            })
        };
        rules(wish.kind).iter().filter_map(edge).collect()
    }

    /// Returns the step an end means, and the wish since which it exists.
    fn end(&self, end: End, wish: &Wish) -> Option<(StepId, usize)> {
        let (chunk, pass) = match end {
            End::Asker(pass) => (wish.asker, pass),
            End::Target(pass) => (wish.target, pass),
        };
        match pass {
            Pass::Apply => Some((chunk, 0)),
            Pass::Check => self.checks.get(&chunk).map(|check| (check.step, check.since)),
        }
    }

    /// Tells whether `asker` waits for the check of the chunk that `target` applies.
    pub(super) fn asks_about(&self, asker: StepId, target: StepId) -> bool {
        let check = self.checks.get(&target).filter(|_| target < self.apply_steps());
        check.is_some_and(|check| self.into[asker].first_with(check.step).is_some())
    }

    fn apply_steps(&self) -> usize {
        self.steps.len() - self.checks.len()
    }

    /// Tells whether one step comes, by any way, before another.
    pub(super) fn reaches(&self, from: StepId, to: StepId) -> bool {
        let mut open = vec![from];
        let mut seen = vec![false; self.steps.len()];
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                open.extend(self.out[at].ends());
            }
        }
        false
    }

    /// Returns the steps given and all that any of them waits for.
    pub(super) fn with_needs(&self, mut open: Vec<StepId>) -> Vec<bool> {
        let mut needed = vec![false; self.steps.len()];
        while let Some(step) = open.pop() {
            if !std::mem::replace(&mut needed[step], true) {
                open.extend(self.into[step].ends());
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws the edges of wishes `(asker, kind, target)` between three chunks; `0?` is a check.
    fn edges(wishes: &[(usize, Requisite, usize)]) -> String {
        let wishes: Vec<Wish> =
            wishes.iter().map(|&(asker, kind, target)| Wish { asker, kind, target }).collect();
        let net = Net::new(3, &wishes);
        let name = |step: StepId| {
            let Step { chunk, pass } = net.steps[step];
            if pass == Pass::Check { format!("{chunk}?") } else { chunk.to_string() }
        };
        let mut drawn = Vec::new();
        for (first, bundle) in net.out.iter().enumerate() {
            for behind in bundle.ends() {
                let kinds = |bundle: &Bundle, end: StepId| -> Vec<&'static str> {
                    let edges = bundle.edges().filter(|(own, _)| *own == end);
                    edges.map(|(_, kind)| kind.word()).collect()
                };
                let words = kinds(bundle, behind);
                assert_eq!(kinds(&net.into[behind], first), words);
                drawn.push(format!("{}-{}>{}", name(first), words.join("+"), name(behind)));
            }
        }
        drawn.join(" ")
    }

    #[test]
    fn requisites_become_edges() {
        use Requisite as R;
        assert_eq!(edges(&[(1, R::Require, 0), (1, R::Watch, 0)]), "0-require+watch>1");
        assert_eq!(edges(&[(0, R::Prereq, 1)]), "0-require>1 1?-prereq>0");
    }

    #[test]
    fn a_check_waits_for_what_its_chunk_waits_for() {
        use Requisite as R;
        let drawn = "0-require>1 2-watch>1 2-watch>1? 1?-prereq>0";
        assert_eq!(edges(&[(1, R::Watch, 2), (0, R::Prereq, 1)]), drawn);
        let drawn = "0-require>1 2-watch>1? 2-watch>1 1?-prereq>0";
        assert_eq!(edges(&[(0, R::Prereq, 1), (1, R::Watch, 2)]), drawn);
    }

    #[test]
    fn a_chain_of_checks_follows_the_order_of_declaration() {
        use Requisite as R;
        let drawn = "0-require>1 1-require>2 1?-prereq>0 2?-prereq>1 2?-prereq>1?";
        assert_eq!(edges(&[(0, R::Prereq, 1), (1, R::Prereq, 2)]), drawn);
        let drawn = "0-require>1 1-require>2 2?-prereq>1 1?-prereq>0";
        assert_eq!(edges(&[(1, R::Prereq, 2), (0, R::Prereq, 1)]), drawn);
    }
}
