//! Events → nodes: anchors, aliases, tags.
//!
//! Nodes live in one vector and name each other by number, so that an alias is simply a second
//! mention, a cycle costs nothing, and no depth of nesting reaches our stack.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Error, ErrorKind, Limits, Mark,
    events::{Data, Events, Head},
    scalar::{Tag, resolve},
};

pub(super) type Id = u32;

pub(super) struct Node<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) tag: Tag,
    pub(super) mark: Mark,
}

pub(super) enum Kind<'a> {
    Scalar(Cow<'a, str>),
    /// The items are a run in [`Tree::links`].
    Sequence(Run),
    /// Keys and values take turns in a run in [`Tree::links`].
    Mapping(Run),
}

impl Kind<'_> {
    /// PyYAML's word for it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Sequence(_) => "sequence",
            Self::Mapping(_) => "mapping",
        }
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// One document.
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) links: Vec<Id>,
    pub(super) root: Option<Id>,
    /// Whether a node may be mentioned more than once.
    pub(super) has_aliases: bool,
    /// Whether a node contains itself.
    pub(super) recursive: bool,
}

impl<'a> Tree<'a> {
    pub(super) fn node(&self, id: Id) -> &Node<'a> {
        &self.nodes[id as usize]
    }

    pub(super) fn links(&self, run: Run) -> &[Id] {
        &self.links[run.start as usize..(run.start + run.len) as usize]
    }
}

/// A container whose end has not come yet.
struct Open {
    id: Id,
    /// Where its items begin in `Composer::pending`.
    first: usize,
    /// Nodes below it, aliases followed.
    weight: usize,
}

struct Composer<'a> {
    tree: Tree<'a>,
    open: Vec<Open>,
    pending: Vec<Id>,
    anchors: HashMap<&'a str, Id>,
    /// The weight of anchored nodes; absent while such a node is still open.
    weights: HashMap<Id, usize>,
    limits: Limits,
}

/// Reads the single document of the text.
pub(super) fn compose(text: &str, limits: Limits) -> Result<Tree<'_>, Error> {
    if let Some(error) = unacceptable(text) {
        return Err(error);
    }
    let mut events = Events::new(text);
    let mut composer = Composer {
        tree: Tree {
            // Room that is not used costs nothing; growing would copy everything.
            nodes: Vec::with_capacity(text.len() / 5),
            links: Vec::with_capacity(text.len() / 5),
            root: None,
            has_aliases: false,
            recursive: false,
        },
        open: Vec::new(),
        pending: Vec::new(),
        anchors: HashMap::new(),
        weights: HashMap::new(),
        limits,
    };
    let mut documents = 0;
    let mut first = Mark::default();
    loop {
        let event = events.next()?;
        match event.data {
            Data::DocumentEnd => {}
            Data::StreamEnd => return Ok(composer.tree),
            Data::DocumentStart if documents == 1 => {
                let context = ("expected a single document in the stream", first);
                let problem = "but found another document";
                return Err(Error::new(ErrorKind::Composer, Some(context), problem, event.mark));
            }
            Data::DocumentStart => documents = 1,
            data => {
                if composer.tree.nodes.is_empty() {
                    first = event.mark;
                }
                composer.take(data, event.mark)?;
            }
        }
    }
}

impl<'a> Composer<'a> {
    fn take(&mut self, data: Data<'a>, mark: Mark) -> Result<(), Error> {
        match data {
            Data::Scalar { head, value, plain } => {
                let (tag, anchor) = match head {
                    None => (None, None),
                    Some(head) => (head.tag, head.anchor),
                };
                let tag = match tag {
                    Some(tag) if tag != "!" => Tag::named(&tag),
                    _ if plain => resolve(&value),
                    _ => Tag::Str,
                };
                self.add(Kind::Scalar(value), tag, anchor, mark)?;
            }
            Data::Sequence(head) => {
                self.begin(Kind::Sequence(Run::default()), Tag::Seq, head, mark)?;
            }
            Data::Mapping(head) => {
                self.begin(Kind::Mapping(Run::default()), Tag::Map, head, mark)?;
            }
            Data::End => self.end(mark)?,
            Data::Alias(anchor) => self.alias(anchor, mark)?,
            Data::StreamEnd | Data::DocumentStart | Data::DocumentEnd => {}
        }
        Ok(())
    }

    fn add(
        &mut self,
        kind: Kind<'a>,
        tag: Tag,
        anchor: Option<&'a str>,
        mark: Mark,
    ) -> Result<Id, Error> {
        let id = self.tree.nodes.len() as Id;
        if let Some(anchor) = anchor {
            if let Some(&first) = self.anchors.get(anchor) {
                let context =
                    ("found duplicate anchor; first occurrence", self.tree.node(first).mark);
                let problem = "second occurrence";
                return Err(Error::new(ErrorKind::Composer, Some(context), problem, mark));
            }
            self.anchors.insert(anchor, id);
            if let Kind::Scalar(_) = kind {
                self.weights.insert(id, 1);
            }
        }
        self.tree.nodes.push(Node { kind, tag, mark });
        self.mention(id, 1, mark)?;
        Ok(id)
    }

    /// Puts a node into the container that is open.
    fn mention(&mut self, id: Id, weight: usize, mark: Mark) -> Result<(), Error> {
        match self.open.last_mut() {
            Some(open) => {
                self.pending.push(id);
                open.weight = open.weight.saturating_add(weight);
                let weight = open.weight;
                self.check_weight(weight, mark)?;
            }
            None => self.tree.root = Some(id),
        }
        Ok(())
    }

    fn begin(
        &mut self,
        kind: Kind<'a>,
        default: Tag,
        head: Option<Box<Head<'a>>>,
        mark: Mark,
    ) -> Result<(), Error> {
        if self.open.len() >= self.limits.depth {
            let problem = format!("nested deeper than {} levels", self.limits.depth);
            return Err(Error::limit(problem, mark));
        }
        let (tag, anchor) = match head {
            None => (None, None),
            Some(head) => (head.tag, head.anchor),
        };
        let tag = match tag {
            Some(tag) if tag != "!" => Tag::named(&tag),
            _ => default,
        };
        // Its own mention counts when it ends, with all that is in it.
        let id = self.add(kind, tag, anchor, mark)?;
        self.open.push(Open { id, first: self.pending.len(), weight: 0 });
        Ok(())
    }

    fn end(&mut self, mark: Mark) -> Result<(), Error> {
        let Some(Open { id, first, weight }) = self.open.pop() else { return Ok(()) };
        let run =
            Run { start: self.tree.links.len() as u32, len: (self.pending.len() - first) as u32 };
        self.tree.links.extend(self.pending.drain(first..));
        let node = &mut self.tree.nodes[id as usize];
        match &mut node.kind {
            Kind::Sequence(own) | Kind::Mapping(own) => *own = run,
            Kind::Scalar(_) => {}
        }
        if !self.anchors.is_empty() {
            self.weights.insert(id, weight.saturating_add(1));
        }
        if let Some(open) = self.open.last_mut() {
            open.weight = open.weight.saturating_add(weight);
            let weight = open.weight;
            self.check_weight(weight, mark)?;
        }
        Ok(())
    }

    fn check_weight(&self, weight: usize, mark: Mark) -> Result<(), Error> {
        let limit = self.limits.nodes;
        let written = self.tree.nodes.len();
        if self.tree.has_aliases && weight > limit && weight / 10 > written {
            let problem = format!("aliases expand to more than {limit} nodes");
            return Err(Error::limit(problem, mark));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: &str, mark: Mark) -> Result<(), Error> {
        let Some(&id) = self.anchors.get(anchor) else {
            let problem = "found undefined alias";
            return Err(Error::new(ErrorKind::Composer, None, problem, mark));
        };
        self.tree.has_aliases = true;
        let weight = self.weights.get(&id).copied();
        // A node that is still open mentions itself; what that amounts to is found out at the end.
        self.tree.recursive |= weight.is_none();
        let weight = weight.unwrap_or(1);
        self.mention(id, weight, mark)
    }
}

/// Finds the first character that YAML does not allow, as libyaml's reader does before anything
/// else is looked at.
fn unacceptable(text: &str) -> Option<Error> {
    const STEP: usize = 64;
    let bytes = text.as_bytes();
    // Nearly every text is ASCII without controls: whole chunks are passed at once.
    let plain = |chunk: &[u8]| {
        chunk
            .iter()
            .fold(true, |plain, byte| plain & ((byte.wrapping_sub(b' ') < 0x5f) | (*byte == b'\n')))
    };
    let position = bytes.chunks(STEP).enumerate().filter(|(_, chunk)| !plain(chunk)).find_map(
        |(number, chunk)| {
            let from = number * STEP;
            (from..from + chunk.len()).find(|&index| is_unacceptable(&bytes[index..]))
        },
    )?;
    let before = &text[..position];
    let code = text[position..].chars().next().map_or(0, u32::from);
    let line = before.matches('\n').count() as u32;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32;
    let problem =
        format!("unacceptable character #x{code:04x}: control characters are not allowed");
    Some(Error::reader(problem, position, Mark { line, column }))
}

/// Tells whether an unacceptable character begins here.
fn is_unacceptable(bytes: &[u8]) -> bool {
    match bytes {
        [b'\t' | b'\n' | b'\r' | b' '..=b'~', ..] => false,
        [0..b' ' | 0x7f, ..] => true,
        // Only C1 controls and the two non-characters are refused beyond ASCII.
        [0xc2, next, ..] => *next < 0xa0 && *next != 0x85,
        [0xef, 0xbf, 0xbe | 0xbf, ..] => true,
        _ => false,
    }
}
