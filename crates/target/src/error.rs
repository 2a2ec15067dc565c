//! What is wrong with a target expression.

use std::fmt;

/// A target that cannot be understood, with the place of the trouble and, if we have one, a hint.
///
/// `Display` is one line; [`Error::pointed`] adds the expression with a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    pub kind: Kind,
    /// The expression as written.
    pub expr: String,
    /// Where in it, as a character position from 0; `None` if the whole is meant.
    pub at: Option<usize>,
    pub hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Operators, operands or parentheses do not fit together.
    Compound(String),
    /// A nodegroup cannot be expanded.
    Nodegroup(String),
    Regex(String),
    /// Not an address or network.
    Address(String),
    /// `X@…` with a letter that is no engine, or a target type of an unknown name.
    Engine(String),
    /// A range expression: we have no range server.
    Range,
    /// The target has a type that its kind cannot use.
    Type(String),
    /// The part lacks the delimiter, so that it can match nothing.
    NoDelimiter(String),
}

impl Error {
    pub(crate) fn new(kind: Kind, expr: impl Into<String>) -> Self {
        Self { kind, expr: expr.into(), at: None, hint: None }
    }

    #[must_use]
    pub(crate) fn at(mut self, at: Option<usize>) -> Self {
        self.at = at;
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the message, the expression, a caret under the place, and the hint.
    pub fn pointed(&self) -> String {
        let mut text = self.message();
        if let Some(at) = self.at {
            text += &format!("\n  {}\n  {}^", self.expr, " ".repeat(at));
        }
        if let Some(hint) = &self.hint {
            text += &format!("\nhelp: {hint}");
        }
        text
    }

    fn message(&self) -> String {
        let expr = &self.expr;
        match &self.kind {
            Kind::Compound(why) => format!("Invalid compound target: {expr}: {why}"),
            Kind::Nodegroup(why) => format!("Failed nodegroup expansion: {why}"),
            Kind::Regex(why) => format!("Invalid regular expression in target `{expr}`: {why}"),
            Kind::Address(part) => format!("Invalid IP/CIDR target: {part}"),
            Kind::Engine(why) => why.clone(),
            Kind::Range => {
                "Range matcher unavailable: range targets need a range server, which is not supported"
                    .to_owned()
            }
            Kind::Type(why) => format!("Invalid target: {why}"),
            Kind::NoDelimiter(part) => format!(
                "Insufficient arguments for a grain or pillar match: `{part}` names no value"
            ),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}
