//! `log`: write to the minion's log, from templates and by hand.

use halite_spec::{Cx, Result, function, module};

module! {
    /// Write to the minion's log.
    "log": debug, info, warning, error, critical, exception,
}

macro_rules! levels {
    ($($name:ident, $log:ident, $sentence:literal;)*) => {
        $(
            #[doc = $sentence]
            ///
            /// ```console
            #[doc = concat!("$ salt '*' log.", stringify!($name), " 'something happened'")]
            /// ```
            #[function]
            pub fn $name(
                _cx: &Cx,
                /// The message.
                message: halite_value::Value,
            ) -> Result<bool> {
                tracing::$log!("{message}");
                Ok(true)
            }
        )*
    };
}

levels! {
    debug, debug, "Log a message for whoever looks for a fault.";
    info, info, "Log a message about the course of things.";
    warning, warn, "Log a warning.";
    error, error, "Log an error.";
    critical, error, "Log a critical error.";
    exception, error, "Log an error, as an exception is logged.";
}
