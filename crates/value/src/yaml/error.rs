//! What went wrong while reading YAML, in PyYAML's words.
//!
//! Scripts and people know these texts, so they are kept to the letter, with PyYAML's class name
//! and its marks (lines and columns from 0). [`Error::place`] is our addition: where the author has
//! to look, after a template has moved the lines.

use std::{borrow::Cow, fmt};

use super::LoadOptions;
use crate::Place;

/// A position in the text, counted from 0 as PyYAML does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub line: u32,
    /// In characters.
    pub column: u32,
}

/// The class of an error, as PyYAML or Python would raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    Reader,
    Scanner,
    Parser,
    Composer,
    Constructor,
    /// PyYAML lets an exception of Python's through, such as a `ValueError` for `!!int x`.
    Python(&'static str),
    /// One of our own limits was exceeded.
    Limit,
}

impl ErrorKind {
    /// Returns the name of the exception class.
    pub fn class(self) -> &'static str {
        match self {
            Self::Reader => "ReaderError",
            Self::Scanner => "ScannerError",
            Self::Parser => "ParserError",
            Self::Composer => "ComposerError",
            Self::Constructor => "ConstructorError",
            Self::Python(class) => class,
            Self::Limit => "YAMLError",
        }
    }
}

/// Why a text could not be read. `Display` is PyYAML's `str(exc)`.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    context: Option<&'static str>,
    context_mark: Option<Mark>,
    problem: Cow<'static, str>,
    problem_mark: Option<Mark>,
    /// For reader errors: the offset in bytes.
    position: Option<usize>,
    name: String,
    place: Option<Place>,
}

impl Error {
    pub(super) fn new(
        kind: ErrorKind,
        context: Option<(&'static str, Mark)>,
        problem: impl Into<Cow<'static, str>>,
        mark: Mark,
    ) -> Self {
        let (context, context_mark) = context.unzip();
        Self(Box::new(Inner {
            kind,
            context,
            context_mark,
            problem: problem.into(),
            problem_mark: Some(mark),
            position: None,
            name: String::new(),
            place: None,
        }))
    }

    pub(super) fn constructor(
        context: Option<(&'static str, Mark)>,
        problem: impl Into<Cow<'static, str>>,
        mark: Mark,
    ) -> Self {
        Self::new(ErrorKind::Constructor, context, problem, mark)
    }

    pub(super) fn limit(problem: impl Into<Cow<'static, str>>, mark: Mark) -> Self {
        Self::new(ErrorKind::Limit, None, problem, mark)
    }

    /// An exception of Python's own, which shows no mark; we keep it for the place.
    pub(super) fn python(class: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(ErrorKind::Python(class), None, message.into(), Mark::default());
        error.0.problem_mark = None;
        error
    }

    pub(super) fn reader(problem: String, position: usize, mark: Mark) -> Self {
        let mut error = Self::new(ErrorKind::Reader, None, problem, mark);
        error.0.position = Some(position);
        error
    }

    /// Adds a mark to an error that was made where none was known.
    pub(super) fn or_at(mut self, mark: Mark) -> Self {
        self.0.problem_mark.get_or_insert(mark);
        self
    }

    pub(super) fn named(mut self, options: &LoadOptions<'_>) -> Self {
        options.name.clone_into(&mut self.0.name);
        // Of a quote that is never closed, or a key that no colon follows, the beginning is what the
        // author wants to see.
        let begun = ["found unexpected end of stream", "could not find expected ':'"];
        let unclosed = begun.iter().any(|problem| self.0.problem.starts_with(problem));
        let mark = self.0.context_mark.filter(|_| unclosed).or(self.0.problem_mark);
        self.0.place = mark.map(|mark| match options.place_map {
            Some(map) => map(mark.line + 1, mark.column + 1),
            None => Place::new(options.name, mark.line + 1, mark.column + 1),
        });
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what was being done: `while parsing a block mapping`.
    pub fn context(&self) -> Option<&str> {
        self.0.context
    }

    /// Returns where that began.
    pub fn context_mark(&self) -> Option<Mark> {
        self.0.context_mark
    }

    /// Returns what is wrong: `did not find expected key`.
    pub fn problem(&self) -> &str {
        &self.0.problem
    }

    /// Returns where the problem is in the text that was read.
    pub fn mark(&self) -> Option<Mark> {
        self.0.problem_mark
    }

    /// Returns where the author has to look, mapped through [`LoadOptions::place_map`].
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { context, context_mark, problem, problem_mark, name, .. } = &*self.0;
        if let ErrorKind::Python(_) = self.0.kind {
            return f.write_str(problem);
        }
        if let Some(position) = self.0.position {
            return write!(f, "{problem}\n  in \"{name}\", position {position}");
        }
        let place = |mark: &Mark| {
            format!("  in \"{name}\", line {}, column {}", mark.line + 1, mark.column + 1)
        };
        if let Some(context) = context {
            writeln!(f, "{context}")?;
        }
        // Said once when both are the same place.
        if let Some(mark) = context_mark.filter(|mark| Some(*mark) != *problem_mark) {
            writeln!(f, "{}", place(&mark))?;
        }
        f.write_str(problem)?;
        match problem_mark {
            Some(mark) => write!(f, "\n{}", place(mark)),
            None => Ok(()),
        }
    }
}
