//! What goes wrong in a template.
//!
//! An [`Error`] keeps the class and the message that Python would have raised, because Salt shows
//! them and people search for them, and adds what Python does not tell: the chain of places
//! (template, line) from the mistake out through macros, includes and imports, and what was
//! misspelt ([`Subject`]) with the nearest known word.
//!
//! [`Error::as_salt`] gives the one line and the excerpt that genuine Salt shows for it.

use std::{borrow::Cow, fmt, sync::Arc};

use halite_value::{Value, str_repr, suggest};

use super::slips;

/// The Python class of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    UndefinedError,
    TemplateSyntaxError,
    TemplateAssertionError,
    TemplateRuntimeError,
    TemplateNotFound,
    TemplatesNotFound,
    TemplateError,
    FilterArgumentError,
    SecurityError,
    AttributeError,
    IndexError,
    KeyError,
    LookupError,
    MemoryError,
    OverflowError,
    RecursionError,
    RuntimeError,
    StopIteration,
    SyntaxError,
    TypeError,
    UnicodeDecodeError,
    UnicodeEncodeError,
    ValueError,
    ZeroDivisionError,
    /// Raised by a function that the caller supplied, e.g. `CommandExecutionError`.
    Other(String),
}

impl Class {
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Other(name) => Cow::Owned(name.clone()),
            // The variants are named as Python names the classes.
            other => Cow::Owned(format!("{other:?}")),
        }
    }

    /// Returns how Salt begins its message for an error of this class.
    fn salt_prefix(&self) -> &'static str {
        match self {
            Self::UndefinedError => "Jinja variable ",
            Self::TemplateSyntaxError
            | Self::TemplateAssertionError
            | Self::TemplateRuntimeError
            | Self::FilterArgumentError
            | Self::SecurityError => "Jinja syntax error: ",
            Self::Other(name)
                if matches!(&**name, "CommandExecutionError" | "SaltInvocationError") =>
            {
                "Problem running salt function in Jinja template: "
            }
            _ => "Jinja error: ",
        }
    }
}

/// What kind of code a place is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// The template itself.
    Template,
    Macro(String),
    Block(String),
    /// The body or condition of a loop.
    Loop,
}

/// A place in a template that was running when the error came up.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The name that the template was asked for; `None` for the one given as text.
    pub template: Option<Arc<str>>,
    /// The file it came from.
    pub file: Option<Arc<str>>,
    pub line: u32,
    pub within: Within,
    pub source: Arc<str>,
}

/// What an error is about, for hints.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A variable that is not defined.
    Name(String),
    /// A key or attribute that something does not have.
    Key {
        of: String,
        key: String,
    },
    Filter(String),
    Test(String),
    Template(String),
    Tag(String),
}

#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    class: Class,
    message: String,
    /// From the mistake outwards.
    spots: Vec<Spot>,
    /// Of a syntax error, until the template is known.
    line: Option<u32>,
    subject: Option<Subject>,
    suggestion: Option<String>,
    /// What helps besides.
    note: Option<String>,
    /// The argument that Python's exception carries, where the message is not it.
    key: Option<Value>,
    /// Python's, of a function that a user wrote.
    traceback: Option<String>,
}

impl Error {
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            class,
            message: message.into(),
            spots: Vec::new(),
            line: None,
            subject: None,
            suggestion: None,
            note: None,
            key: None,
            traceback: None,
        }))
    }

    /// An error raised by a function that the caller supplied.
    pub fn other(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Class::Other(class.into()), message)
    }

    /// Adds what Python says of the way to the mistake.
    #[must_use]
    pub fn with_traceback(mut self, traceback: Option<String>) -> Self {
        self.0.traceback = traceback;
        self
    }

    /// Adds what helps.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.0.note = Some(note.into());
        self
    }

    pub(crate) fn syntax(class: Class, message: impl Into<String>, line: u32) -> Self {
        let mut error = Self::new(class, message);
        error.0.line = Some(line);
        error
    }

    pub(crate) fn key(key: &Value) -> Self {
        let mut error = Self::new(Class::KeyError, key.repr());
        error.0.key = Some(key.clone());
        error
    }

    pub(crate) fn about<'a>(
        mut self,
        subject: Subject,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let word = match &subject {
            Subject::Name(word)
            | Subject::Key { key: word, .. }
            | Subject::Filter(word)
            | Subject::Test(word)
            | Subject::Template(word)
            | Subject::Tag(word) => word,
        };
        let habit = match &subject {
            Subject::Name(word) => slips::name(word),
            Subject::Key { key, .. } => slips::method(key),
            _ => None,
        };
        self.0.suggestion = habit.or_else(|| suggest::nearest(word, known)).map(str::to_owned);
        self.0.subject = Some(subject);
        self
    }

    /// Adds the place that was running, from the inside out.
    pub(crate) fn at(mut self, spot: Spot) -> Self {
        // A long recursion says the same again and again.
        if self.0.spots.len() < 64 {
            if self.0.spots.is_empty() {
                self.look_around(&spot);
            }
            self.0.spots.push(spot);
        }
        self
    }

    /// Finds what a name may have been meant to be among those that live inside functions, which
    /// are slots by now: loop variables, arguments of macros. Of words as near as one of these the
    /// one that the author wrote is meant.
    fn look_around(&mut self, spot: &Spot) {
        let Some(Subject::Name(name)) = &self.0.subject else { return };
        if slips::name(name).is_some() {
            return;
        }
        let near = self.0.suggestion.take();
        let known = slips::declared(&spot.source, spot.line);
        let known = known.iter().map(halite_value::SmolStr::as_str).chain(near.as_deref());
        let known = known.filter(|known| known != name);
        self.0.suggestion = suggest::nearest(name, known).map(str::to_owned);
    }

    pub(crate) fn syntax_line(&self) -> Option<u32> {
        self.0.line
    }

    pub(crate) fn has_spots(&self) -> bool {
        !self.0.spots.is_empty()
    }

    pub fn class(&self) -> &Class {
        &self.0.class
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the places that were running: the mistake first, the outermost template last.
    pub fn spots(&self) -> &[Spot] {
        &self.0.spots
    }

    /// Returns the place of the mistake.
    pub fn spot(&self) -> Option<&Spot> {
        self.0.spots.first()
    }

    pub fn subject(&self) -> Option<&Subject> {
        self.0.subject.as_ref()
    }

    /// Returns the known word nearest to the one that was not found.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Returns what helps to mend it, besides a better word.
    pub fn note(&self) -> Option<&str> {
        self.0.note.as_deref()
    }

    pub(crate) fn is_attribute_like(&self) -> bool {
        matches!(
            self.0.class,
            Class::AttributeError
                | Class::TypeError
                | Class::KeyError
                | Class::IndexError
                | Class::LookupError
        )
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self.0.class, Class::TemplateNotFound | Class::TemplatesNotFound)
    }

    /// Tells the error as genuine Salt does. `sls` is the name of the SLS being rendered, if any.
    pub fn as_salt(&self, sls: Option<&str>) -> SaltError {
        let mut message = format!("{}{}", self.0.class.salt_prefix(), self.0.message);
        // Salt looks for the innermost place that is not a block.
        let spot = self.0.spots.iter().find(|spot| !matches!(spot.within, Within::Block(_)));
        let mut line = spot.map_or(0, |spot| spot.line);
        if let Some((spot, file)) = spot.and_then(|spot| Some((spot, spot.file.as_ref()?))) {
            let own = sls.is_some_and(|sls| file.ends_with(&sls.replace('.', "/")));
            if !own {
                message.push_str(&format!("\n{file}({line}):\n{}", excerpt(&spot.source, line)));
                line = 0;
            }
        }
        if let Some(traceback) = &self.0.traceback {
            message.push_str(&format!("\n{}\n\n", traceback.trim_end()));
        }
        SaltError { message, line }
    }
}

/// An error as genuine Salt tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaltError {
    pub message: String,
    /// In the SLS; 0 when the mistake is in another file (the message then holds the excerpt).
    pub line: u32,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.class.name(), self.0.message)?;
        if let Some(spot) = self.spot() {
            let file = spot.file.as_deref().or(spot.template.as_deref());
            write!(
                f,
                " ({}line {})",
                file.map(|file| format!("{file}, ")).unwrap_or_default(),
                spot.line
            )?;
        }
        if let Some(suggestion) = self.suggestion() {
            write!(f, "; did you mean {}?", str_repr(suggestion))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Returns the lines around one, which is marked, as Salt shows them.
pub fn excerpt(text: &str, line: u32) -> String {
    const AROUND: usize = 5;
    let lines: Vec<&str> = text.lines().collect();
    let line = line as usize;
    if line > lines.len() || line == 0 {
        return text.to_owned();
    }
    let (from, to) = (line.saturating_sub(AROUND + 1), lines.len().min(line + AROUND));
    let mut out = String::from("---\n");
    if from > 0 {
        out.push_str("[...]\n");
    }
    for (index, text) in lines[from..to].iter().enumerate() {
        out.push_str(text);
        if from + index + 1 == line {
            out.push_str("    <======================");
        }
        out.push('\n');
    }
    if to < lines.len() {
        out.push_str("[...]\n");
    }
    out.push_str("---");
    out
}

pub(crate) fn type_error(message: impl Into<String>) -> Error {
    Error::new(Class::TypeError, message)
}

pub(crate) fn value_error(message: impl Into<String>) -> Error {
    Error::new(Class::ValueError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceback_stands_behind_the_place_in_another_file() {
        let mut error = Error::new(Class::TypeError, "no").with_traceback(Some("Trace\n".into()));
        let told = |error: &Error| error.as_salt(Some("own")).message;
        let plain = told(&error);
        assert!(plain.ends_with("no\nTrace\n\n"), "{plain}");
        error.0.spots.push(Spot {
            template: None,
            file: Some("/srv/macro.sls".into()),
            line: 1,
            within: Within::Template,
            source: "{{ f() }}".into(),
        });
        let place = "\n/srv/macro.sls(1):\n---\n{{ f() }}    <======================\n---";
        let elsewhere = told(&error);
        assert!(elsewhere.ends_with(&format!("no{place}\nTrace\n\n")), "{elsewhere}");
    }

    #[test]
    fn excerpts_are_cut_and_marked() {
        let text: String = (1..=20).map(|n| format!("l{n}\n")).collect();
        let shown = excerpt(&text, 10);
        assert!(shown.starts_with("---\n[...]\nl5\n"), "{shown}");
        assert!(shown.contains("l10    <======================\nl11"), "{shown}");
        assert!(shown.ends_with("l15\n[...]\n---"), "{shown}");
    }
}
