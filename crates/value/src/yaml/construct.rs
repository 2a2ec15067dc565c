//! Nodes → values, level by level.
//!
//! PyYAML makes a container empty, hands it out, and fills it when the level above is complete.
//! We keep that order (a queue), for two reasons: of several errors the one nearest the root is
//! reported, and a container may contain itself.

use std::{borrow::Cow, collections::HashSet, fmt::Write as _};

use super::{
    Dialect, Error, Limits, LoadOptions, Mark, Places,
    compose::{Id, Kind, Run, Tree},
    scalar::{Tag, binary_of, bool_of, float_of, int_of, timestamp_of},
};
use crate::{Dict, Key, List, Map, Value, set::Set, str_repr};

struct Constructor<'a, 'p> {
    tree: Tree<'a>,
    /// The value of each node that has one; used only when there are aliases.
    made: Vec<Option<Value>>,
    /// Containers that are handed out and not filled yet.
    queue: std::collections::VecDeque<(Id, Value)>,
    places: &'p Places<'p>,
    dialect: Dialect,
    ordered: bool,
    limits: Limits,
}

pub(super) fn construct(
    tree: Tree<'_>,
    places: &Places<'_>,
    options: &LoadOptions<'_>,
) -> Result<Value, Error> {
    let LoadOptions { dialect, ordered, limits, .. } = *options;
    let Some(root) = tree.root else { return Ok(Value::Null) };
    let made = if tree.has_aliases { vec![None; tree.nodes.len()] } else { Vec::new() };
    let queue = std::collections::VecDeque::new();
    let mut constructor = Constructor { tree, made, queue, places, dialect, ordered, limits };
    let value = constructor.object(root)?;
    while let Some((id, shell)) = constructor.queue.pop_front() {
        constructor.fill(id, &shell)?;
    }
    if constructor.tree.recursive {
        Walk { open: HashSet::new(), left: limits.nodes / 10, depth: limits.depth }
            .visit(&value)?;
    }
    Ok(value)
}

/// Walks a value that contains itself as a printer does, which stops where a container would be
/// inside itself. Such a value can have exponentially many paths, even if its text is short.
struct Walk {
    open: HashSet<usize>,
    left: usize,
    depth: usize,
}

impl Walk {
    fn visit(&mut self, value: &Value) -> Result<(), Error> {
        let spent = self.left.checked_sub(1);
        let (Some(left), true) = (spent, self.open.len() <= self.depth) else {
            let problem = "a value that contains itself is too large";
            return Err(Error::limit(problem, Mark::default()));
        };
        self.left = left;
        match value {
            Value::List(list) if self.open.insert(list.identity()) => {
                list.read().iter().try_for_each(|item| self.visit(item))?;
                self.open.remove(&list.identity());
                Ok(())
            }
            Value::Dict(dict) if self.open.insert(dict.identity()) => {
                dict.read().values().try_for_each(|item| self.visit(item))?;
                self.open.remove(&dict.identity());
                Ok(())
            }
            Value::Tuple(items) => items.iter().try_for_each(|item| self.visit(item)),
            _ => Ok(()),
        }
    }
}

const MAPPING: &str = "while constructing a mapping";

impl<'a> Constructor<'a, '_> {
    /// Returns the value of a node; a container comes empty and is queued.
    fn object(&mut self, id: Id) -> Result<Value, Error> {
        if let Some(Some(value)) = self.made.get(id as usize) {
            return Ok(value.clone());
        }
        let node = self.tree.node(id);
        let mark = node.mark;
        let shell = match node.tag {
            Tag::Omap if self.dialect == Dialect::Plain => Value::List(List::new()),
            Tag::Map | Tag::Omap => {
                let dict = Dict::new();
                if self.ordered {
                    dict.set_ordered();
                }
                Value::Dict(dict)
            }
            Tag::Seq | Tag::Pairs => Value::List(List::new()),
            Tag::Set => Value::from(Set::default()),
            _ => {
                let value = self.scalar(id).map_err(|error| error.or_at(mark))?;
                return Ok(self.keep(id, value));
            }
        };
        self.queue.push_back((id, shell.clone()));
        Ok(self.keep(id, shell))
    }

    fn keep(&mut self, id: Id, value: Value) -> Value {
        if let Some(made) = self.made.get_mut(id as usize) {
            *made = Some(value.clone());
        }
        value
    }

    fn scalar(&mut self, id: Id) -> Result<Value, Error> {
        let node = self.tree.node(id);
        match &node.tag {
            Tag::Null => self.text(id).map(|_| Value::Null),
            Tag::Bool => bool_of(self.text(id)?),
            Tag::Int => match node.kind {
                Kind::Scalar(_) => int_of(self.text(id)?, self.dialect),
                _ if self.dialect == Dialect::Plain => self.text(id).map(|_| Value::Null),
                _ => Err(Error::python(
                    "AttributeError",
                    "'list' object has no attribute 'startswith'",
                )),
            },
            Tag::Float => float_of(self.text(id)?),
            Tag::Timestamp if self.dialect == Dialect::Plain => timestamp_of(self.text(id)?),
            Tag::Str | Tag::Timestamp => self.text(id).map(Value::str),
            Tag::Binary => {
                let mark = node.mark;
                binary_of(self.text(id)?, self.dialect)
                    .map_err(|why| Error::constructor(None, why, mark))
            }
            Tag::PythonUnicode if self.dialect == Dialect::Salt => match &node.kind {
                Kind::Scalar(text) => Ok(Value::str(text)),
                other => Err(unexpected("scalar", other, node.mark)),
            },
            // A text that `salt.serializers.yaml` marks; nothing decrypts it there either.
            Tag::Other(name)
                if self.dialect == Dialect::Plain && name.starts_with("!encrypted") =>
            {
                self.text(id).map(Value::str)
            }
            tag => {
                let problem = format!(
                    "could not determine a constructor for the tag {}",
                    str_repr(&tag.name())
                );
                Err(Error::constructor(None, problem, node.mark))
            }
        }
    }

    /// Returns the text of a scalar node; of a mapping, the text under `=`.
    fn text(&self, id: Id) -> Result<&str, Error> {
        let mut id = id;
        // A mapping may hold itself under `=`.
        for _ in 0..self.limits.depth {
            let node = self.tree.node(id);
            match &node.kind {
                Kind::Scalar(text) => return Ok(text),
                Kind::Mapping(run) => {
                    let value = self
                        .tree
                        .links(*run)
                        .chunks_exact(2)
                        .find(|pair| self.tree.node(pair[0]).tag == Tag::Value);
                    match value {
                        Some(pair) => id = pair[1],
                        None => return Err(unexpected("scalar", &node.kind, node.mark)),
                    }
                }
                Kind::Sequence(_) => return Err(unexpected("scalar", &node.kind, node.mark)),
            }
        }
        Err(Error::python("RecursionError", "maximum recursion depth exceeded"))
    }

    fn fill(&mut self, id: Id, shell: &Value) -> Result<(), Error> {
        match shell {
            Value::Dict(dict) => self.fill_dict(id, dict),
            Value::List(list) if matches!(self.tree.node(id).tag, Tag::Pairs | Tag::Omap) => {
                self.fill_pairs(id, list)
            }
            Value::List(list) => self.fill_list(id, list),
            other => {
                let entries = Dict::new();
                self.fill_dict(id, &entries)?;
                if let Some(set) = other.as_object::<Set>() {
                    entries.keys().into_iter().for_each(|key| set.insert(key));
                }
                Ok(())
            }
        }
    }

    fn fill_list(&mut self, id: Id, list: &List) -> Result<(), Error> {
        let node = self.tree.node(id);
        let Kind::Sequence(run) = node.kind else {
            return Err(unexpected("sequence", &node.kind, node.mark));
        };
        let mut items = Vec::with_capacity(run.len as usize);
        for index in run.start..run.start + run.len {
            items.push(self.object(self.tree.links[index as usize])?);
        }
        *list.write() = items;
        if self.places.wanted {
            let place = |id: &Id| self.places.at(self.tree.node(*id).mark);
            list.set_places(self.tree.links(run).iter().map(place).collect());
        }
        Ok(())
    }

    fn fill_dict(&mut self, id: Id, dict: &Dict) -> Result<(), Error> {
        let run = self.flatten(id, 0)?;
        let mark = self.tree.node(id).mark;
        let pairs = run.len as usize / 2;
        let mut map = Map::with_capacity(pairs);
        // Most dicts are small and there are many: room for four would be most of their memory.
        let mut places = Vec::with_capacity(if self.places.wanted { pairs } else { 0 });
        for index in (run.start..run.start + run.len).step_by(2) {
            let (key_id, value_id) =
                (self.tree.links[index as usize], self.tree.links[index as usize + 1]);
            let key_mark = self.tree.node(key_id).mark;
            let key = self.object(key_id)?;
            let key = match key {
                // A set is as unhashable as a dict, which `Key` cannot know.
                Value::Object(_) => Err(()),
                key => Key::try_from(key).map_err(|_| ()),
            };
            let Ok(key) = key else {
                let problem = match self.dialect {
                    Dialect::Salt => {
                        format!("found unacceptable key {}", shown_value(&self.tree, key_id))
                    }
                    Dialect::Plain => "found unhashable key".into(),
                };
                return Err(Error::constructor(Some((MAPPING, mark)), problem, key_mark));
            };
            let value = self.object(value_id)?;
            if self.dialect == Dialect::Plain {
                map.insert(key, value);
                continue;
            }
            // Each NaN is a key of its own, but PyYAML makes the same object of every one.
            if matches!(&*key, Value::Float(float) if float.is_nan())
                && map.keys().any(|key| matches!(&**key, Value::Float(float) if float.is_nan()))
            {
                let problem = "found conflicting ID 'nan'";
                return Err(Error::constructor(Some((MAPPING, mark)), problem, key_mark));
            }
            if map.contains_key(&key) {
                // Python formats the key that came second: `True` collides with `1`.
                let key = self.object(key_id)?;
                let problem = format!("found conflicting ID '{key}'");
                return Err(Error::constructor(Some((MAPPING, mark)), problem, key_mark));
            }
            if self.places.wanted {
                places.push((key.clone(), self.places.at(key_mark)));
            }
            map.insert(key, value);
        }
        *dict.write() = map;
        if self.places.wanted {
            dict.set_places(places);
        }
        Ok(())
    }

    fn fill_pairs(&mut self, id: Id, list: &List) -> Result<(), Error> {
        let node = self.tree.node(id);
        let what = match node.tag {
            Tag::Omap => "while constructing an ordered map",
            _ => "while constructing pairs",
        };
        let context = Some((what, node.mark));
        let Kind::Sequence(run) = node.kind else {
            let problem = format!("expected a sequence, but found {}", node.kind.name());
            return Err(Error::constructor(context, problem, node.mark));
        };
        for index in run.start..run.start + run.len {
            let item = self.tree.node(self.tree.links[index as usize]);
            let pair = match item.kind {
                Kind::Mapping(pair) => pair,
                ref other => {
                    let what = other.name();
                    let problem = format!("expected a mapping of length 1, but found {what}");
                    return Err(Error::constructor(context, problem, item.mark));
                }
            };
            if pair.len != 2 {
                let count = pair.len / 2;
                let problem = format!("expected a single mapping item, but found {count} items");
                return Err(Error::constructor(context, problem, item.mark));
            }
            let start = pair.start as usize;
            let (key, value) = (self.tree.links[start], self.tree.links[start + 1]);
            let (key, value) = (self.object(key)?, self.object(value)?);
            list.push(Value::tuple([key, value]));
        }
        Ok(())
    }

    /// Puts what `<<` brings in before the mapping's own entries, and returns the entries.
    ///
    /// Salt drops what the mapping has itself, comparing the text of the keys (so `1` and `'1'`
    /// are the same here), and leaves two merged mappings with a common key to the duplicate check.
    fn flatten(&mut self, id: Id, depth: usize) -> Result<Run, Error> {
        // Anchors can chain without nesting, so the depth of the text does not bound this.
        if depth > self.limits.depth {
            return Err(Error::python("RecursionError", "maximum recursion depth exceeded"));
        }
        let node = self.tree.node(id);
        let (mark, Kind::Mapping(run)) = (node.mark, &node.kind) else {
            return Err(unexpected("mapping", &node.kind, node.mark));
        };
        let run = *run;
        let special = |pair: &[Id]| matches!(self.tree.node(pair[0]).tag, Tag::Merge | Tag::Value);
        if !self.tree.links(run).chunks_exact(2).any(special) {
            return Ok(run);
        }
        let own: Vec<Id> = self.tree.links(run).to_vec();
        let (mut kept, mut merged) = (Vec::new(), Vec::new());
        // Emptied meanwhile, so that a mapping that merges itself finds nothing there.
        self.set_run(id, Run::default());
        for pair in own.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            match self.tree.node(key).tag {
                Tag::Merge => self.merge(value, mark, depth, &mut merged)?,
                Tag::Value => {
                    self.tree.nodes[key as usize].tag = Tag::Str;
                    kept.extend_from_slice(pair);
                }
                _ => kept.extend_from_slice(pair),
            }
        }
        let start = self.tree.links.len() as u32;
        if merged.is_empty() {
            self.tree.links.extend(kept);
        } else {
            let names: HashSet<&str> =
                kept.chunks_exact(2).filter_map(|pair| key_text(&self.tree, pair[0])).collect();
            let mut all: Vec<Id> = Vec::with_capacity(kept.len() + merged.len());
            for pair in merged.chunks_exact(2) {
                let hidden = self.dialect == Dialect::Salt
                    && key_text(&self.tree, pair[0]).is_some_and(|text| names.contains(text));
                if !hidden {
                    all.extend_from_slice(pair);
                }
            }
            all.extend(kept);
            self.tree.links.extend(all);
        }
        let run = Run { start, len: self.tree.links.len() as u32 - start };
        self.set_run(id, run);
        Ok(run)
    }

    fn set_run(&mut self, id: Id, run: Run) {
        if let Kind::Mapping(own) = &mut self.tree.nodes[id as usize].kind {
            *own = run;
        }
    }

    /// Collects the entries of what stands behind `<<`.
    fn merge(
        &mut self,
        value: Id,
        mark: Mark,
        depth: usize,
        merged: &mut Vec<Id>,
    ) -> Result<(), Error> {
        let node = self.tree.node(value);
        let runs = match node.kind {
            Kind::Mapping(_) => vec![self.flatten(value, depth + 1)?],
            Kind::Sequence(items) => {
                let mut runs = Vec::new();
                for index in items.start..items.start + items.len {
                    let item = self.tree.links[index as usize];
                    let node = self.tree.node(item);
                    let Kind::Mapping(_) = node.kind else {
                        let what = node.kind.name();
                        let problem = format!("expected a mapping for merging, but found {what}");
                        return Err(Error::constructor(Some((MAPPING, mark)), problem, node.mark));
                    };
                    runs.push(self.flatten(item, depth + 1)?);
                }
                runs.reverse();
                runs
            }
            Kind::Scalar(_) => {
                let problem =
                    "expected a mapping or list of mappings for merging, but found scalar";
                return Err(Error::constructor(Some((MAPPING, mark)), problem, node.mark));
            }
        };
        for run in runs {
            merged.extend_from_slice(self.tree.links(run));
            // Merging a list of aliases, several times over, multiplies.
            if merged.len() > self.limits.nodes && merged.len() / 10 > self.tree.nodes.len() {
                let problem = format!("merges expand to more than {} nodes", self.limits.nodes);
                return Err(Error::limit(problem, mark));
            }
        }
        Ok(())
    }
}

fn key_text<'t>(tree: &'t Tree<'_>, id: Id) -> Option<&'t str> {
    match &tree.node(id).kind {
        Kind::Scalar(text) => Some(text),
        _ => None,
    }
}

fn unexpected(wanted: &str, found: &Kind<'_>, mark: Mark) -> Error {
    let found = found.name();
    Error::constructor(None, format!("expected a {wanted} node, but found {found}"), mark)
}

/// Returns what Python prints for the `value` of a node: its children, as a list of node objects.
fn shown_value(tree: &Tree<'_>, id: Id) -> String {
    /// Longer than anybody reads; aliases could make it endless.
    const MOST: usize = 16 << 10;

    fn value(tree: &Tree<'_>, id: Id, out: &mut String, open: &mut Vec<Id>) {
        if out.len() > MOST || open.len() > 100 || open.contains(&id) {
            out.push_str("[...]");
            return;
        }
        open.push(id);
        match &tree.node(id).kind {
            Kind::Scalar(text) => out.push_str(&str_repr(text)),
            Kind::Sequence(run) => {
                out.push('[');
                for (index, item) in tree.links(*run).iter().enumerate() {
                    separate(index, out);
                    object(tree, *item, out, open);
                }
                out.push(']');
            }
            Kind::Mapping(run) => {
                out.push('[');
                for (index, pair) in tree.links(*run).chunks_exact(2).enumerate() {
                    separate(index, out);
                    out.push('(');
                    object(tree, pair[0], out, open);
                    out.push_str(", ");
                    object(tree, pair[1], out, open);
                    out.push(')');
                }
                out.push(']');
            }
        }
        open.pop();
    }

    fn separate(index: usize, out: &mut String) {
        if index > 0 {
            out.push_str(", ");
        }
    }

    fn object(tree: &Tree<'_>, id: Id, out: &mut String, open: &mut Vec<Id>) {
        let node = tree.node(id);
        let class = match node.kind {
            Kind::Scalar(_) => "ScalarNode",
            Kind::Sequence(_) => "SequenceNode",
            Kind::Mapping(_) => "MappingNode",
        };
        let _ = write!(out, "{class}(tag={}, value=", str_repr(&node.tag.name()));
        value(tree, id, out, open);
        out.push(')');
    }

    let mut out = String::new();
    match &tree.node(id).kind {
        // A scalar key that is unhashable cannot be; were it one, its text would be shown bare.
        Kind::Scalar(text) => return Cow::Borrowed(&**text).into_owned(),
        _ => value(tree, id, &mut out, &mut Vec::new()),
    }
    out
}
