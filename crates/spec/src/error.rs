//! What can go wrong in a function or a state.

use halite_value::Place;

use crate::host;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The work itself failed; Salt's `CommandExecutionError`.
    #[error("{0}")]
    Failed(String),
    /// The request makes no sense; Salt's `SaltInvocationError`.
    #[error("{0}")]
    Invalid(String),
    /// The arguments do not fit the declaration.
    #[error(transparent)]
    Args(#[from] ArgError),
    /// No such function.
    #[error("'{0}' is not available.")]
    NotFound(String),
    /// The function exists, but not on this machine; the reason is for the user.
    #[error("'{function}' is not available: {reason}")]
    Unavailable { function: String, reason: String },
    /// The function's module does not load here; the text is Salt's, and says why.
    #[error("{0}")]
    NotLoaded(String),
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A template, SLS or data file is wrong, and we know where.
    #[error("{message}")]
    Source {
        message: String,
        /// The exception Salt lets through where it is no `SaltRenderError`.
        class: Option<String>,
        place: Option<Place>,
        excerpt: Option<String>,
        help: Option<String>,
    },
    /// An exception of another class, as users' Python or a template raised it.
    #[error("{message}")]
    Raised { class: String, message: String, traceback: Option<String> },
    #[error("the job was cancelled")]
    Cancelled,
}

impl Error {
    /// Builds [`Error::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Builds [`Error::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Builds [`Error::Raised`], for what Salt leaves to Python: `ValueError` …
    pub fn raised(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Raised { class: class.into(), message: message.into(), traceback: None }
    }

    /// A function cannot do without a program that is not there; Salt's `CommandNotFoundError`.
    pub fn no_program(names: &[&str]) -> Self {
        let message = match names {
            [name] => format!("The '{name}' binary was not found in $PATH."),
            _ => {
                let quoted: Vec<String> =
                    names.iter().map(|name| format!("\"'{name}'\"")).collect();
                format!("None of provided binaries([{}]) were found in $PATH.", quoted.join(", "))
            }
        };
        Self::raised("CommandNotFoundError", message)
    }

    /// Tells whether there is no such function, for whatever reason.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::Unavailable { .. } | Self::NotLoaded(_))
    }

    /// Says it in Python's words where the system refused, as Salt does within its own sentences:
    /// `[Errno 21] Is a directory: '/srv/app'`.
    pub fn python_words(&self) -> String {
        let words = match self {
            Self::Host(error) => error.python_words(),
            _ => None,
        };
        words.unwrap_or_else(|| self.to_string())
    }

    /// Returns the name of the Python exception Salt would have raised.
    pub fn class(&self) -> &str {
        match self {
            Self::Failed(_) => "CommandExecutionError",
            Self::Invalid(_) => "SaltInvocationError",
            Self::Args(_) => "TypeError",
            Self::NotFound(_) | Self::Unavailable { .. } | Self::NotLoaded(_) => "KeyError",
            Self::Host(error) if error.is_missing() => "FileNotFoundError",
            Self::Host(_) => "OSError",
            Self::Source { class, .. } => class.as_deref().unwrap_or("SaltRenderError"),
            Self::Raised { class, .. } => class,
            Self::Cancelled => "SystemExit",
        }
    }
}

/// A call that does not fit the function's arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgError {
    #[error("missing argument `{0}`")]
    Missing(String),
    #[error("unexpected argument `{name}`{}", hint(.suggestion.as_deref()))]
    Unexpected { name: String, suggestion: Option<String> },
    #[error("takes {allowed} arguments but {given} were given")]
    TooMany { allowed: usize, given: usize },
    #[error("argument `{0}` was given twice")]
    Twice(String),
    #[error("argument `{name}` must be {expected}, not {given}")]
    Type { name: String, expected: String, given: String },
}

impl ArgError {
    /// The argument it is about, if it is one that was given.
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Unexpected { name, .. } | Self::Twice(name) | Self::Type { name, .. } => {
                Some(name)
            }
            Self::Missing(_) | Self::TooMany { .. } => None,
        }
    }
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}
