//! Tokens → events: the grammar.
//!
//! A state machine with an explicit stack, so that no nesting reaches our own. States, and the
//! words of the errors, are libyaml's.

use std::borrow::Cow;

use super::{
    Error, ErrorKind, Mark,
    scan::{Kind, Scanner, TagName},
};

pub(super) struct Event<'a> {
    pub(super) data: Data<'a>,
    pub(super) mark: Mark,
}

pub(super) enum Data<'a> {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(&'a str),
    Scalar {
        head: Option<Box<Head<'a>>>,
        value: Cow<'a, str>,
        /// Whether the value decides the tag.
        plain: bool,
    },
    Sequence(Option<Box<Head<'a>>>),
    Mapping(Option<Box<Head<'a>>>),
    End,
}

/// What may stand before a node. Rare, so events carry it in a box and stay small.
pub(super) struct Head<'a> {
    pub(super) anchor: Option<&'a str>,
    pub(super) tag: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy)]
enum State {
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

pub(super) struct Events<'a> {
    scanner: Scanner<'a>,
    state: State,
    states: Vec<State>,
    /// Where the open containers began, for messages.
    marks: Vec<Mark>,
    /// Handles and what they stand for.
    tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

const DEFAULT_TAGS: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

type Next<'a> = Result<Event<'a>, Error>;

impl<'a> Events<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            scanner: Scanner::new(text),
            state: State::ImplicitDocumentStart,
            states: Vec::with_capacity(16),
            marks: Vec::with_capacity(16),
            tags: Vec::new(),
        }
    }

    pub(super) fn next(&mut self) -> Next<'a> {
        match self.state {
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequenceFirstEntry => {
                self.begin()?;
                self.block_sequence_entry()
            }
            State::BlockSequenceEntry => self.block_sequence_entry(),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => {
                self.begin()?;
                self.block_mapping_key()
            }
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => {
                self.begin()?;
                self.flow_sequence_entry(true)
            }
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.pair_key(),
            State::FlowSequenceEntryMappingValue => self.pair_value(),
            State::FlowSequenceEntryMappingEnd => {
                self.state = State::FlowSequenceEntry;
                let mark = self.scanner.peek()?.start;
                Ok(Event { data: Data::End, mark })
            }
            State::FlowMappingFirstKey => {
                self.begin()?;
                self.flow_mapping_key(true)
            }
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok(Event { data: Data::StreamEnd, mark: Mark::default() }),
        }
    }

    /// Takes the token that opened a container, and remembers where it stood.
    fn begin(&mut self) -> Result<(), Error> {
        let mark = self.scanner.peek()?.start;
        self.marks.push(mark);
        self.scanner.skip();
        Ok(())
    }

    fn pop(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Ends a container whose closing token is at hand.
    fn end(&mut self, mark: Mark) -> Next<'a> {
        self.pop();
        self.marks.pop();
        self.scanner.skip();
        Ok(Event { data: Data::End, mark })
    }

    /// Parses a node and comes back to a state afterwards.
    fn node_then(&mut self, state: State, block: bool, indentless: bool) -> Next<'a> {
        self.states.push(state);
        self.node(block, indentless)
    }

    /// Stands for a node that is not there.
    fn empty(&mut self, mark: Mark, state: State) -> Next<'a> {
        self.state = state;
        let data = Data::Scalar { head: None, value: Cow::Borrowed(""), plain: true };
        Ok(Event { data, mark })
    }

    fn error(
        &self,
        context: Option<(&'static str, Mark)>,
        problem: &'static str,
        mark: Mark,
    ) -> Error {
        Error::new(ErrorKind::Parser, context, problem, mark)
    }

    /// An error inside the innermost container.
    fn error_within(&self, context: &'static str, problem: &'static str, mark: Mark) -> Error {
        let began = self.marks.last().copied().unwrap_or_default();
        self.error(Some((context, began)), problem, mark)
    }

    // ---- documents

    fn document_start(&mut self, implicit: bool) -> Next<'a> {
        if !implicit {
            while let Kind::DocumentEnd = self.scanner.peek()?.kind {
                self.scanner.skip();
            }
        }
        let token = self.scanner.peek()?;
        let mark = token.start;
        match token.kind {
            Kind::StreamEnd => {
                self.state = State::End;
                return Ok(Event { data: Data::StreamEnd, mark });
            }
            Kind::VersionDirective { .. } | Kind::TagDirective(_) | Kind::DocumentStart => {}
            _ if implicit => {
                self.directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                return Ok(Event { data: Data::DocumentStart, mark });
            }
            _ => {}
        }
        self.directives()?;
        let token = self.scanner.peek()?;
        let Kind::DocumentStart = token.kind else {
            let found = token.start;
            return Err(self.error(None, "did not find expected <document start>", found));
        };
        self.scanner.skip();
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        Ok(Event { data: Data::DocumentStart, mark })
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut version_seen = false;
        loop {
            let token = self.scanner.peek()?;
            let mark = token.start;
            match &mut token.kind {
                Kind::VersionDirective { major, minor } => {
                    let known = *major == 1 && matches!(*minor, 1 | 2);
                    if std::mem::replace(&mut version_seen, true) {
                        return Err(self.error(None, "found duplicate %YAML directive", mark));
                    }
                    if !known {
                        return Err(self.error(None, "found incompatible YAML document", mark));
                    }
                }
                Kind::TagDirective(directive) => {
                    let TagName { handle, suffix: prefix } = *std::mem::take(directive);
                    if self.tags.iter().any(|(own, _)| *own == handle) {
                        return Err(self.error(None, "found duplicate %TAG directive", mark));
                    }
                    self.tags.push((handle, prefix));
                }
                _ => break,
            }
            self.scanner.skip();
        }
        for (handle, prefix) in DEFAULT_TAGS {
            if !self.tags.iter().any(|(own, _)| own == handle) {
                self.tags.push((handle.into(), prefix.into()));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        match token.kind {
            Kind::VersionDirective { .. }
            | Kind::TagDirective(_)
            | Kind::DocumentStart
            | Kind::DocumentEnd
            | Kind::StreamEnd => {
                let mark = token.start;
                let state = self.states.pop().unwrap_or(State::End);
                self.empty(mark, state)
            }
            _ => self.node(true, false),
        }
    }

    fn document_end(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        let mark = token.start;
        if let Kind::DocumentEnd = token.kind {
            self.scanner.skip();
        }
        self.tags.clear();
        self.state = State::DocumentStart;
        Ok(Event { data: Data::DocumentEnd, mark })
    }

    // ---- nodes

    fn node(&mut self, block: bool, indentless: bool) -> Next<'a> {
        let token = self.scanner.peek()?;
        let mut mark = token.start;
        let mut head: Option<Box<Head<'a>>> = None;
        match &mut token.kind {
            Kind::Scalar { value, plain } => {
                let data = Data::Scalar { head, value: std::mem::take(value), plain: *plain };
                self.pop();
                self.scanner.skip();
                return Ok(Event { data, mark });
            }
            Kind::Alias(anchor) => {
                let data = Data::Alias(anchor);
                self.pop();
                self.scanner.skip();
                return Ok(Event { data, mark });
            }
            Kind::Anchor(_) | Kind::Tag(_) => {
                mark = token.start;
                head = Some(Box::new(self.head()?));
            }
            _ => {}
        }
        let token = self.scanner.peek()?;
        match &mut token.kind {
            Kind::BlockEntry if indentless => {
                self.state = State::IndentlessSequenceEntry;
                Ok(Event { data: Data::Sequence(head), mark })
            }
            Kind::Scalar { value, plain } => {
                // A bare `!` asks for the type that the value looks like, quoted or not.
                let plain = match head.as_ref().and_then(|head| head.tag.as_deref()) {
                    None => *plain,
                    Some(tag) => tag == "!",
                };
                let data = Data::Scalar { head, value: std::mem::take(value), plain };
                self.pop();
                self.scanner.skip();
                Ok(Event { data, mark })
            }
            Kind::FlowSequenceStart => {
                self.state = State::FlowSequenceFirstEntry;
                Ok(Event { data: Data::Sequence(head), mark })
            }
            Kind::FlowMappingStart => {
                self.state = State::FlowMappingFirstKey;
                Ok(Event { data: Data::Mapping(head), mark })
            }
            Kind::BlockSequenceStart if block => {
                self.state = State::BlockSequenceFirstEntry;
                Ok(Event { data: Data::Sequence(head), mark })
            }
            Kind::BlockMappingStart if block => {
                self.state = State::BlockMappingFirstKey;
                Ok(Event { data: Data::Mapping(head), mark })
            }
            _ if head.is_some() => {
                let tag = head.as_ref().and_then(|head| head.tag.as_deref());
                let plain = tag.is_none_or(str::is_empty);
                self.pop();
                Ok(Event { data: Data::Scalar { head, value: Cow::Borrowed(""), plain }, mark })
            }
            _ => {
                let found = token.start;
                let context =
                    if block { "while parsing a block node" } else { "while parsing a flow node" };
                let problem = "did not find expected node content";
                Err(self.error(Some((context, mark)), problem, found))
            }
        }
    }

    /// Takes an anchor and a tag, in either order.
    fn head(&mut self) -> Result<Head<'a>, Error> {
        let start = self.scanner.peek()?.start;
        let mut anchor = None;
        let mut tag = None;
        for _ in 0..2 {
            let token = self.scanner.peek()?;
            match &mut token.kind {
                Kind::Anchor(name) if anchor.is_none() => anchor = Some(*name),
                Kind::Tag(name) if tag.is_none() => {
                    tag = Some((std::mem::take(name), token.start));
                }
                _ => break,
            }
            self.scanner.skip();
        }
        let tag = match tag {
            None => None,
            Some((name, _)) if name.handle.is_empty() => Some(name.suffix),
            Some((name, mark)) => match self.tags.iter().find(|(own, _)| *own == name.handle) {
                Some((_, prefix)) => Some(Cow::Owned(format!("{prefix}{}", name.suffix))),
                None => {
                    let context = Some(("while parsing a node", start));
                    return Err(self.error(context, "found undefined tag handle", mark));
                }
            },
        };
        Ok(Head { anchor, tag })
    }

    // ---- block containers

    fn block_sequence_entry(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            Kind::BlockEntry => {
                self.scanner.skip();
                match self.scanner.peek()?.kind {
                    Kind::BlockEntry | Kind::BlockEnd => self.empty(end, State::BlockSequenceEntry),
                    _ => self.node_then(State::BlockSequenceEntry, true, false),
                }
            }
            Kind::BlockEnd => self.end(start),
            _ => {
                let context = "while parsing a block collection";
                Err(self.error_within(context, "did not find expected '-' indicator", start))
            }
        }
    }

    fn indentless_sequence_entry(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        let Kind::BlockEntry = token.kind else {
            self.pop();
            return Ok(Event { data: Data::End, mark: start });
        };
        self.scanner.skip();
        match self.scanner.peek()?.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty(end, State::IndentlessSequenceEntry)
            }
            _ => self.node_then(State::IndentlessSequenceEntry, true, false),
        }
    }

    fn block_mapping_key(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            Kind::Key => {
                self.scanner.skip();
                match self.scanner.peek()?.kind {
                    Kind::Key | Kind::Value | Kind::BlockEnd => {
                        self.empty(end, State::BlockMappingValue)
                    }
                    _ => self.node_then(State::BlockMappingValue, true, true),
                }
            }
            Kind::BlockEnd => self.end(start),
            _ => {
                let context = "while parsing a block mapping";
                Err(self.error_within(context, "did not find expected key", start))
            }
        }
    }

    fn block_mapping_value(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        let Kind::Value = token.kind else {
            return self.empty(start, State::BlockMappingKey);
        };
        self.scanner.skip();
        match self.scanner.peek()?.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => self.empty(end, State::BlockMappingKey),
            _ => self.node_then(State::BlockMappingKey, true, true),
        }
    }

    // ---- flow containers

    fn flow_sequence_entry(&mut self, first: bool) -> Next<'a> {
        if !first {
            let token = self.scanner.peek()?;
            match token.kind {
                Kind::FlowSequenceEnd => {}
                Kind::FlowEntry => self.scanner.skip(),
                _ => {
                    let found = token.start;
                    let context = "while parsing a flow sequence";
                    return Err(self.error_within(
                        context,
                        "did not find expected ',' or ']'",
                        found,
                    ));
                }
            }
        }
        let token = self.scanner.peek()?;
        let start = token.start;
        match token.kind {
            Kind::FlowSequenceEnd => self.end(start),
            Kind::Key => {
                self.scanner.skip();
                self.state = State::FlowSequenceEntryMappingKey;
                Ok(Event { data: Data::Mapping(None), mark: start })
            }
            _ => self.node_then(State::FlowSequenceEntry, false, false),
        }
    }

    /// The key of a single pair inside a sequence: `[a: b]`.
    fn pair_key(&mut self) -> Next<'a> {
        let token = self.scanner.peek()?;
        let end = token.end;
        match token.kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // libyaml swallows the token, and with it the value of `[? : x]`.
                self.scanner.skip();
                self.empty(end, State::FlowSequenceEntryMappingValue)
            }
            _ => self.node_then(State::FlowSequenceEntryMappingValue, false, false),
        }
    }

    fn pair_value(&mut self) -> Next<'a> {
        if let Kind::Value = self.scanner.peek()?.kind {
            self.scanner.skip();
            match self.scanner.peek()?.kind {
                Kind::FlowEntry | Kind::FlowSequenceEnd => {}
                _ => return self.node_then(State::FlowSequenceEntryMappingEnd, false, false),
            }
        }
        let mark = self.scanner.peek()?.start;
        self.empty(mark, State::FlowSequenceEntryMappingEnd)
    }

    fn flow_mapping_key(&mut self, first: bool) -> Next<'a> {
        if !first {
            let token = self.scanner.peek()?;
            match token.kind {
                Kind::FlowMappingEnd => {}
                Kind::FlowEntry => self.scanner.skip(),
                _ => {
                    let found = token.start;
                    let context = "while parsing a flow mapping";
                    return Err(self.error_within(
                        context,
                        "did not find expected ',' or '}'",
                        found,
                    ));
                }
            }
        }
        let token = self.scanner.peek()?;
        let start = token.start;
        match token.kind {
            Kind::FlowMappingEnd => self.end(start),
            Kind::Key => {
                self.scanner.skip();
                let token = self.scanner.peek()?;
                match token.kind {
                    Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd => {
                        let mark = token.start;
                        self.empty(mark, State::FlowMappingValue)
                    }
                    _ => self.node_then(State::FlowMappingValue, false, false),
                }
            }
            _ => self.node_then(State::FlowMappingEmptyValue, false, false),
        }
    }

    fn flow_mapping_value(&mut self, none: bool) -> Next<'a> {
        let token = self.scanner.peek()?;
        if let (false, Kind::Value) = (none, &token.kind) {
            self.scanner.skip();
            match self.scanner.peek()?.kind {
                Kind::FlowEntry | Kind::FlowMappingEnd => {}
                _ => return self.node_then(State::FlowMappingKey, false, false),
            }
        }
        let mark = self.scanner.peek()?.start;
        self.empty(mark, State::FlowMappingKey)
    }
}
