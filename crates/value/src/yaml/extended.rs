//! Salt's extended YAML: `!aggregate` and `!reset` (renderer `yamlex`).
//!
//! Equal keys of a mapping may repeat: the last one wins, unless both values (or their keys) are
//! marked `!aggregate`, in which case lists are joined, without doubles, and mappings are laid over
//! each other; the values within two mappings are treated alike. A lone value counts as a list of
//! one. `!reset` begins anew. All of it happens to the nodes, before anything is made of them, so
//! that places and errors stay those of plain YAML.

use std::collections::HashSet;

use super::{
    compose::{Id, Kind, Node, Run, Tree},
    scalar::{Tag, resolve},
};

const AGGREGATE: &str = "!aggregate";
const RESET: &str = "!reset";

/// What was marked `!aggregate`, its mark taken away: a mapping which is laid over another one later
/// still joins what is in it.
type Parts = HashSet<Id>;

/// Takes the marks away and joins what belongs together.
pub(super) fn join(tree: &mut Tree<'_>) {
    let mut next: Id = 0;
    let mut parts = Parts::new();
    if let Some(root) = tree.root {
        let (root, _) = plain(tree, &mut parts, root, false);
        tree.root = Some(root);
    }
    // What is joined becomes a new node at the end, which is looked at in its turn.
    while (next as usize) < tree.nodes.len() {
        match tree.node(next).kind {
            Kind::Mapping(run) => {
                let run = joined(tree, &mut parts, run);
                tree.nodes[next as usize].kind = Kind::Mapping(run);
            }
            Kind::Sequence(run) => {
                for index in run.start..run.start + run.len {
                    let item = tree.links[index as usize];
                    let (item, _) = plain(tree, &mut parts, item, false);
                    tree.links[index as usize] = item;
                }
            }
            Kind::Scalar(_) => {}
        }
        next += 1;
    }
}

fn is_marked(tree: &Tree<'_>, id: Id, mark: &str) -> bool {
    matches!(&tree.node(id).tag, Tag::Other(name) if &**name == mark)
}

/// The node without its mark, and whether it was `!aggregate`.
fn plain(tree: &mut Tree<'_>, parts: &mut Parts, id: Id, is_part: bool) -> (Id, bool) {
    let aggregate = is_part || is_marked(tree, id, AGGREGATE) || parts.contains(&id);
    let marked = is_marked(tree, id, AGGREGATE) || is_marked(tree, id, RESET);
    if marked {
        let node = &mut tree.nodes[id as usize];
        node.tag = match &node.kind {
            Kind::Scalar(text) => resolve(text),
            Kind::Sequence(_) => Tag::Seq,
            Kind::Mapping(_) => Tag::Map,
        };
    }
    if !aggregate {
        return (id, false);
    }
    let id = match tree.node(id).kind {
        Kind::Scalar(_) if tree.node(id).tag == Tag::Null => add(tree, Vec::new(), Tag::Seq, id),
        Kind::Scalar(_) => add(tree, vec![id], Tag::Seq, id),
        Kind::Sequence(_) | Kind::Mapping(_) => id,
    };
    parts.insert(id);
    (id, true)
}

/// Adds a container with these links.
fn add(tree: &mut Tree<'_>, links: Vec<Id>, tag: Tag, like: Id) -> Id {
    let run = place(tree, links);
    let kind = if tag == Tag::Seq { Kind::Sequence(run) } else { Kind::Mapping(run) };
    let mark = tree.node(like).mark;
    tree.nodes.push(Node { kind, tag, mark });
    (tree.nodes.len() - 1) as Id
}

fn place(tree: &mut Tree<'_>, links: Vec<Id>) -> Run {
    let run = Run { start: tree.links.len() as u32, len: links.len() as u32 };
    tree.links.extend(links);
    run
}

/// Tells whether two nodes are the same scalar.
fn same(tree: &Tree<'_>, one: Id, other: Id) -> bool {
    let (one, other) = (tree.node(one), tree.node(other));
    match (&one.kind, &other.kind) {
        (Kind::Scalar(left), Kind::Scalar(right)) => left == right && one.tag == other.tag,
        _ => false,
    }
}

fn joined(tree: &mut Tree<'_>, parts: &mut Parts, run: Run) -> Run {
    let own = tree.links(run).to_vec();
    // Key, value, and whether more may be joined to it.
    let mut kept: Vec<(Id, Id, bool)> = Vec::with_capacity(own.len() / 2);
    for pair in own.chunks_exact(2) {
        let &[key, value] = pair else { continue };
        let reset = is_marked(tree, key, RESET) || is_marked(tree, value, RESET);
        let part = is_marked(tree, key, AGGREGATE);
        let (key, _) = match part || is_marked(tree, key, RESET) {
            // A key is never a list.
            true => (bare(tree, key), false),
            false => (key, false),
        };
        let (value, aggregate) = plain(tree, parts, value, part);
        let merge = tree.node(key).tag == Tag::Merge;
        let known = kept.iter().position(|(known, ..)| !merge && same(tree, *known, key));
        match known.and_then(|at| kept.get(at).map(|entry| (at, *entry))) {
            None => kept.push((key, value, aggregate)),
            Some((at, (first, old, open))) => {
                let new = match (reset, open && aggregate) {
                    (true, _) => value,
                    (false, true) => both(tree, old, value),
                    (false, false) => instead(tree, old, value),
                };
                if aggregate {
                    parts.insert(new);
                }
                kept[at] = (first, new, aggregate);
            }
        }
    }
    place(tree, kept.into_iter().flat_map(|(key, value, _)| [key, value]).collect())
}

fn bare(tree: &mut Tree<'_>, id: Id) -> Id {
    let node = &mut tree.nodes[id as usize];
    if let Kind::Scalar(text) = &node.kind {
        node.tag = resolve(text);
    }
    id
}

/// Lists joined, mappings one after the other; of different kinds the later one counts.
fn both(tree: &mut Tree<'_>, one: Id, other: Id) -> Id {
    match (&tree.node(one).kind, &tree.node(other).kind) {
        (Kind::Sequence(left), Kind::Sequence(right)) => {
            let mut items = tree.links(*left).to_vec();
            for item in tree.links(*right).to_vec() {
                if !items.iter().any(|known| same(tree, *known, item)) {
                    items.push(item);
                }
            }
            add(tree, items, Tag::Seq, one)
        }
        (Kind::Mapping(left), Kind::Mapping(right)) => {
            let pairs = [tree.links(*left), tree.links(*right)].concat();
            add(tree, pairs, Tag::Map, one)
        }
        _ => other,
    }
}

/// The later of two values which are not joined themselves. Of two mappings, what both have is
/// looked at again, since it may be marked; what only the first has is gone.
fn instead(tree: &mut Tree<'_>, one: Id, other: Id) -> Id {
    let (Kind::Mapping(left), Kind::Mapping(right)) =
        (&tree.node(one).kind, &tree.node(other).kind)
    else {
        return other;
    };
    let (old, new) = (tree.links(*left), tree.links(*right));
    let keys = || new.iter().step_by(2);
    let shared = old.chunks_exact(2).filter(|pair| keys().any(|key| same(tree, pair[0], *key)));
    let mut pairs = shared.flatten().copied().collect::<Vec<_>>();
    if pairs.is_empty() {
        return other;
    }
    pairs.extend(new);
    add(tree, pairs, Tag::Map, other)
}

#[cfg(test)]
mod tests {
    use super::super::{LoadOptions, load};

    fn check(text: &str, expected: &str) {
        let options = LoadOptions { extended: true, ..LoadOptions::default() };
        let shown = match load(text, &options) {
            Ok(value) => value.repr(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn values_are_joined() {
        check("a: !aggregate 1\na: !aggregate 2\n", "{'a': [1, 2]}");
        check("a: !aggregate [1]\na: !aggregate [2]\n", "{'a': [1, 2]}");
        check("a: !aggregate [1, [2]]\na: !aggregate [1, 3]\n", "{'a': [1, [2], 3]}");
        check("a: !aggregate {x: 1}\na: !aggregate {y: 2}\n", "{'a': {'x': 1, 'y': 2}}");
        check("a: !aggregate {x: [1]}\na: !aggregate {x: [2]}\n", "{'a': {'x': [2]}}");
        check("a: !aggregate x\n", "{'a': ['x']}");
        check("a: !aggregate ~\n", "{'a': []}");
        check("a: !aggregate {x: 1}\na: !aggregate [2]\n", "{'a': [2]}");
        check("!aggregate a: 1\n!aggregate a: 2\n", "{'a': [1, 2]}");
        check("!aggregate a: {x: 1}\n!aggregate a: {y: 2}\n", "{'a': {'x': 1, 'y': 2}}");
    }

    #[test]
    fn what_is_within_is_joined() {
        let twice = |one: &str, other: &str, expected: &str| {
            check(&format!("a: {one}\na: {other}\n"), &format!("{{'a': {expected}}}"));
        };
        let joined = "{'b': [1, 2], 'c': [2]}";
        twice("!aggregate {b: !aggregate [1], c: [1]}", "{b: !aggregate [2], c: [2]}", joined);
        twice("{b: !aggregate [1], x: 5}", "{b: !aggregate [2], c: [2]}", joined);
        let deep = "{'b': {'c': [1, 2]}}";
        twice("!aggregate {b: {c: !aggregate 1}}", "!aggregate {b: {c: !aggregate 2}}", deep);
        twice("{b: !aggregate {c: !aggregate 1}}", "{b: !aggregate {c: !aggregate 2}}", deep);
        let maps = "{'b': {'c': {'q': 1, 'r': 1}, 'd': 1}}";
        twice("{b: {c: !aggregate {q: 1}, x: 5}}", "{b: {c: !aggregate {r: 1}, d: 1}}", maps);
        // Both have to be marked, and a list is looked at as a whole.
        twice("{b: {c: [1]}}", "{b: {c: !aggregate [2], d: 1}}", "{'b': {'c': [2], 'd': 1}}");
        twice("{b: {c: !aggregate [1]}}", "{b: {d: 1}}", "{'b': {'d': 1}}");
        twice("{b: [{c: !aggregate [1]}]}", "{b: [{c: !aggregate [2]}]}", "{'b': [{'c': [2]}]}");
    }

    #[test]
    fn others_are_replaced() {
        check("a: 1\na: 2\n", "{'a': 2}");
        check("a: {x: 1}\na: {y: 2}\n", "{'a': {'y': 2}}");
        check("a: !aggregate [1]\na: 2\n", "{'a': 2}");
        check("a: !aggregate {x: 1}\n!reset a: {y: 2}\n", "{'a': {'y': 2}}");
        check("a: !aggregate {x: 1}\na: !reset {y: 2}\n", "{'a': {'y': 2}}");
        check("a: !aggregate [1]\n!reset a: !aggregate [2]\na: !aggregate [3]\n", "{'a': [2, 3]}");
    }

    #[test]
    fn the_rest_is_plain_yaml() {
        check("a: 0644\nb: yes\nc: 2020-01-01\n", "{'a': 644, 'b': True, 'c': '2020-01-01'}");
        check("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n", "{'a': {'b': 1}, 'c': {'b': 1, 'd': 2}}");
        check("- !aggregate a\n- b\n", "[['a'], 'b']");
        check("!aggregate a", "['a']");
        check("", "None");
    }
}
