//! Events of a text, from libyaml-safer's parser.

use std::borrow::Cow;

use libyaml_safer::{Error as ParserError, EventData, Parser};

use super::{Error, ErrorKind, Mark};

pub(super) struct Event<'a> {
    pub(super) data: Data<'a>,
    pub(super) mark: Mark,
}

pub(super) enum Data<'a> {
    StreamStart,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(Cow<'a, str>),
    Scalar {
        head: Head<'a>,
        value: Cow<'a, str>,
        /// Whether the value decides the tag.
        plain: bool,
    },
    Sequence(Head<'a>),
    Mapping(Head<'a>),
    End,
}

/// What may stand before a node.
#[derive(Default)]
pub(super) struct Head<'a> {
    pub(super) anchor: Option<Cow<'a, str>>,
    pub(super) tag: Option<Cow<'a, str>>,
}

pub(super) struct Events<'a> {
    parser: Parser<&'a [u8]>,
}

impl<'a> Events<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut parser = Parser::new();
        parser.set_input(text.as_bytes());
        Self { parser }
    }

    pub(super) fn next(&mut self) -> Result<Event<'a>, Error> {
        let event = self.parser.parse().map_err(|error| converted(&error))?;
        let head = |anchor: Option<String>, tag: Option<String>| Head {
            anchor: anchor.map(Cow::Owned),
            tag: tag.map(Cow::Owned),
        };
        let data = match event.data {
            EventData::StreamStart { .. } => Data::StreamStart,
            EventData::StreamEnd => Data::StreamEnd,
            EventData::DocumentStart { .. } => Data::DocumentStart,
            EventData::DocumentEnd { .. } => Data::DocumentEnd,
            EventData::Alias { anchor } => Data::Alias(anchor.into()),
            EventData::Scalar { anchor, tag, value, plain_implicit, .. } => {
                Data::Scalar { head: head(anchor, tag), value: value.into(), plain: plain_implicit }
            }
            EventData::SequenceStart { anchor, tag, .. } => Data::Sequence(head(anchor, tag)),
            EventData::MappingStart { anchor, tag, .. } => Data::Mapping(head(anchor, tag)),
            EventData::SequenceEnd | EventData::MappingEnd => Data::End,
        };
        Ok(Event { data, mark: mark(event.start_mark) })
    }
}

fn mark(mark: libyaml_safer::Mark) -> Mark {
    Mark { line: mark.line as u32, column: mark.column as u32 }
}

fn converted(error: &ParserError) -> Error {
    let kind = match error.kind() {
        libyaml_safer::ErrorKind::Scanner => ErrorKind::Scanner,
        libyaml_safer::ErrorKind::Parser => ErrorKind::Parser,
        _ => ErrorKind::Reader,
    };
    let context = error.context().zip(error.context_mark().map(mark));
    Error::new(kind, context, error.problem(), error.problem_mark().map(mark).unwrap_or_default())
}
