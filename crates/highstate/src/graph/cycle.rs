//! Requisites that wait for each other: one ring of them, and how it is told.

use halite_value::{Dict, Value};

use super::{
    Graph,
    edges::{Net, StepId},
};
use crate::{Problem, keywords::Requisite, low::text, places::Places};

/// An edge on a ring: `behind` looks at `first`.
struct Link {
    first: StepId,
    kind: Requisite,
    behind: StepId,
}

/// Describes the cycle that keeps the graph from being ordered.
pub(super) fn problem(graph: &Graph, places: &Places) -> Problem {
    let ring = find(&graph.net);
    let links: Vec<String> = ring.iter().map(|link| shown(graph, link)).collect();
    let problem = Problem::new(format!("Recursive requisites were found: {}", links.join(", ")));
    let Some(first) = ring.first() else { return problem };
    let low = graph.low(first.behind);
    let place = places.of_state(&text(low, "__id__"), &text(low, "state"));
    problem.at(place).help(path(graph, &ring))
}

/// Finds one ring, walking along the edges in depth.
fn find(net: &Net) -> Vec<Link> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; net.steps.len()];
    for start in 0..net.steps.len() {
        if marks[start] != Mark::New {
            continue;
        }
        // The path from the start, each with the number of the edge to follow next.
        let mut path: Vec<(StepId, usize)> = vec![(start, 0)];
        marks[start] = Mark::Open;
        while let Some((at, next)) = path.last_mut() {
            let Some(to) = net.out[*at].get(*next) else {
                marks[*at] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[to] {
                Mark::Done => {}
                Mark::New => {
                    marks[to] = Mark::Open;
                    path.push((to, 0));
                }
                Mark::Open => {
                    let ring = path.iter().map(|(at, _)| *at).skip_while(|at| *at != to);
                    let ring: Vec<StepId> = ring.chain([to]).collect();
                    return ring.windows(2).map(|pair| link(net, pair[0], pair[1])).collect();
                }
            }
        }
    }
    Vec::new()
}

fn link(net: &Net, first: StepId, behind: StepId) -> Link {
    let kind = net.out[first].first_with(behind).unwrap_or(Requisite::Require);
    Link { first, kind, behind }
}

/// One link in Salt's words: who waits, by what, for whom.
fn shown(graph: &Graph, link: &Link) -> String {
    let name = |step: StepId| {
        let low = graph.low(step);
        let (id, name) = (low.get("__id__"), low.get("name"));
        let shown = Dict::new();
        shown.insert("SLS", low.get("__sls__"));
        shown.insert("ID", id.clone());
        if id != name {
            shown.insert("NAME", name);
        }
        Value::Dict(shown)
    };
    // Whoever has no `require` of its own waits as the target of a `prereq`.
    let by_prereq = link.kind == Requisite::Require && !graph.low(link.behind).contains("require");
    let word = if by_prereq { Requisite::Prereq } else { link.kind }.word();
    format!("({}, '{word}', {})", name(link.behind), name(link.first))
}

/// The ring as a path, for people.
fn path(graph: &Graph, ring: &[Link]) -> String {
    let name = |step: StepId| {
        let low = graph.low(step);
        format!("{}: {}", text(low, "state"), text(low, "__id__"))
    };
    let waiting = ring.iter().rev().chain(ring.last());
    let path: Vec<String> = waiting.map(|link| name(link.behind)).collect();
    format!("each waits for the next: {}", path.join(" → "))
}
