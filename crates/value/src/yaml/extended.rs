//! Salt's extended YAML: `!aggregate` and `!reset` (renderer `yamlex`).
//!
//! Equal keys of a mapping may repeat: the last one wins, unless both values (or their keys) are
//! marked `!aggregate`, in which case lists are joined, without doubles, and mappings are laid over
//! each other; a lone value counts as a list of one. `!reset` begins anew. All of it happens to the
//! nodes, before anything is made of them, so that places and errors stay those of plain YAML.

use super::{
    compose::{Id, Kind, Node, Run, Tree},
    scalar::{Tag, resolve},
};

const AGGREGATE: &str = "!aggregate";
const RESET: &str = "!reset";

/// Takes the marks away and joins what belongs together.
pub(super) fn join(tree: &mut Tree<'_>) {
    let mut next: Id = 0;
    if let Some(root) = tree.root {
        let (root, _) = plain(tree, root, false);
        tree.root = Some(root);
    }
    // What is joined becomes a new node at the end, which is looked at in its turn.
    while (next as usize) < tree.nodes.len() {
        match tree.node(next).kind {
            Kind::Mapping(run) => {
                let run = joined(tree, run);
                tree.nodes[next as usize].kind = Kind::Mapping(run);
            }
            Kind::Sequence(run) => {
                for index in run.start..run.start + run.len {
                    let item = tree.links[index as usize];
                    let (item, _) = plain(tree, item, false);
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
fn plain(tree: &mut Tree<'_>, id: Id, is_part: bool) -> (Id, bool) {
    let aggregate = is_part || is_marked(tree, id, AGGREGATE);
    let marked = is_marked(tree, id, AGGREGATE) || is_marked(tree, id, RESET);
    if marked {
        let node = &mut tree.nodes[id as usize];
        node.tag = match &node.kind {
            Kind::Scalar(text) => resolve(text),
            Kind::Sequence(_) => Tag::Seq,
            Kind::Mapping(_) => Tag::Map,
        };
    }
    if !aggregate || !matches!(tree.node(id).kind, Kind::Scalar(_)) {
        return (id, aggregate);
    }
    let items = if tree.node(id).tag == Tag::Null { Vec::new() } else { vec![id] };
    (add(tree, items, Tag::Seq, id), true)
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

fn joined(tree: &mut Tree<'_>, run: Run) -> Run {
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
        let (value, aggregate) = plain(tree, value, part);
        let merge = tree.node(key).tag == Tag::Merge;
        let known = kept.iter().position(|(known, ..)| !merge && same(tree, *known, key));
        match known.and_then(|at| kept.get(at).map(|entry| (at, *entry))) {
            None => kept.push((key, value, aggregate)),
            Some((at, (first, old, open))) => {
                let new = match open && aggregate && !reset {
                    true => both(tree, old, value),
                    false => value,
                };
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
