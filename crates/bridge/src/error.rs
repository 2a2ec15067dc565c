//! What can go wrong on the way to a Python function and back.

use std::time::Duration;

use halite_value::Value;

use crate::notation;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no interpreter, or it did not come up.
    #[error("users' Python modules need `{python}`, which cannot be started: {reason}")]
    Start { python: String, reason: String },
    /// The process went away in the middle of a call.
    #[error(
        "the Python process ended ({how}) while it ran {what}; it is started anew for the next call{said}"
    )]
    Ended { what: String, how: String, said: String },
    #[error("{what} took longer than {} s and was ended", .limit.as_secs_f64())]
    TimedOut { what: String, limit: Duration },
    #[error("{what} made the Python process use more than {limit_mb} MB of memory; it was ended")]
    Memory { what: String, limit_mb: u64 },
    #[error("the job was cancelled")]
    Cancelled,
    /// An exception.
    #[error("{}", .0.message)]
    Raised(Box<Raised>),
    #[error("the Python process sent what is no message: {0}")]
    Wire(#[from] notation::Error),
    #[error("what {what} is given cannot be sent to Python: {error}")]
    Given { what: String, error: notation::Error },
    #[error("the Python process cannot be reached: {0}")]
    Io(#[from] std::io::Error),
}

/// An exception, as it left the module.
#[derive(Clone, Debug, Default)]
pub struct Raised {
    /// The class, then those it inherits from.
    pub classes: Vec<String>,
    pub message: String,
    /// From the module's own frame on, as Python prints it.
    pub traceback: String,
    /// The code of a `SystemExit`.
    pub code: Option<i64>,
    /// What Salt's exceptions carry along.
    pub info: Value,
}

impl Raised {
    pub fn class(&self) -> &str {
        self.classes.first().map_or("Exception", String::as_str)
    }

    pub fn is(&self, class: &str) -> bool {
        self.classes.iter().any(|own| own == class)
    }
}

impl From<Error> for halite_spec::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Cancelled => Self::Cancelled,
            Error::Raised(raised) => {
                if raised.is("CommandExecutionError") || raised.is("Unsendable") {
                    tracing::debug!("{}", raised.traceback.trim_end());
                    return Self::Failed(raised.message);
                }
                if raised.is("SaltInvocationError") {
                    tracing::debug!("{}", raised.traceback.trim_end());
                    return Self::Invalid(raised.message);
                }
                let class = raised.class().to_owned();
                Self::Raised {
                    class,
                    message: raised.message,
                    traceback: Some(raised.traceback).filter(|trace| !trace.is_empty()),
                }
            }
            other => Self::Failed(other.to_string()),
        }
    }
}
