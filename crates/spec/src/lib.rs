//! What a function and a state are, and what they are handed.
//!
//! Content crates (`modules`, `states`, …) declare functions with `#[function]` and `module!`,
//! states with `#[derive(Args)]`, [`State`] and `states!`; engines and programs run them with a
//! [`Cx`]. The traits through which content reaches the machine ([`Host`]), the file server
//! ([`Files`]) and the engine ([`Runtime`]) are defined here and implemented above, so that every
//! dependency points up.

// The macros name this crate by its outside name; inside it that name must resolve too.
extern crate self as halite_spec;

mod args;
mod cx;
mod error;
mod files;
mod help;
pub mod host;
pub mod keywords;
mod needs;
mod request;
mod state;
mod utf8;

pub use args::{
    AbsPath, Args, Binder, By, Call, FromArg, Function, IntoReturn, Module, Param, Rest, Strings,
    ToDefault, Unknown,
};
pub use cx::{Cx, Event, Job, Refresh, Runtime, StateRuns, Template, ahead_of};
pub use error::{ArgError, Error, Result};
pub use files::{Fetch, Files};
pub use halite_macros::{Args, function};
pub use host::{Command, Host, Output, Stat};
pub use needs::Need;
pub use request::{Journal, StateRequest, What};
pub use state::{
    Aggregate, Applied, Keys, Outcome, Plan, State, StateFn, StateModule, Watch, Watcher, run,
};
pub use utf8::{NotUtf8, utf8};

/// Lists the functions of an execution module: `module! { /// Look at files. "file": contains, read }`.
///
/// A file begins with it, as its table of contents. A module that exists only where a program or
/// something else is there says so after its name: `"cron", needs = [Need::program(…)]: list_tab`.
#[macro_export]
macro_rules! module {
    ($(#[doc = $doc:literal])* $name:literal $(, needs = [$($need:expr),* $(,)?])? :
     $($function:ident),* $(,)?) => {
        /// The functions of this file, by Salt's names.
        pub static MODULE: $crate::Module = $crate::Module {
            name: $name,
            doc: concat!($($doc, "\n"),*),
            functions: &[$(&$function::SPEC),*],
            needs: &[$($($need),*)?],
        };
    };
}

/// Gives functions of this file a second name: `alias! { ls = list_tab }`. The list of the module
/// names both.
#[macro_export]
macro_rules! alias {
    ($($alias:ident = $function:ident),* $(,)?) => {$(
        #[doc(hidden)]
        pub mod $alias {
            pub static SPEC: $crate::Function = super::$function::SPEC.named(stringify!($alias));
        }
    )*};
}

/// Declares options that are handed on as they are given, for `#[group]`:
/// `option_group! { /// How to ask. Wire: /// Seconds to wait. timeout = Value::Null, }`. `put` adds
/// them to a dict by their names.
#[macro_export]
macro_rules! option_group {
    ($(#[doc = $about:literal])* $name:ident:
     $($(#[doc = $doc:literal])* $option:ident = $default:expr,)*) => {
        $(#[doc = $about])*
        #[derive($crate::Args, Clone, Debug)]
        pub struct $name {
            $(
                $(#[doc = $doc])*
                #[default($default)]
                pub $option: ::halite_value::Value,
            )*
        }

        impl $name {
            /// Adds them to a dict of options.
            pub fn put(&self, options: &::halite_value::Dict) {
                $(options.insert(stringify!($option), self.$option.clone());)*
            }
        }
    };
}

/// Lists the states of a state module: `states! { /// Manage files. "file": "absent" => Absent }`.
///
/// A module whose states can be joined names the function that does it after its name, and one that
/// exists only where something else is there names that:
/// `"pkg", aggregate = join, needs = [Need::function(…)]: "installed" => Installed`.
#[macro_export]
macro_rules! states {
    ($(#[doc = $doc:literal])* $module:literal $(, needs = [$($need:expr),* $(,)?])? :
     $($name:literal => $state:ty),* $(,)?) => {
        $crate::states! {
            @list [$($doc),*] $module, None, [$($($need),*)?], $($name => $state),*
        }
    };
    ($(#[doc = $doc:literal])* $module:literal, aggregate = $join:path
     $(, needs = [$($need:expr),* $(,)?])? : $($name:literal => $state:ty),* $(,)?) => {
        $crate::states! {
            @list [$($doc),*] $module, Some($join), [$($($need),*)?], $($name => $state),*
        }
    };
    (@list [$($doc:literal),*] $module:literal, $join:expr, [$($need:expr),*],
     $($name:literal => $state:ty),*) => {
        /// The states of this file, by Salt's names.
        pub static STATES: $crate::StateModule = $crate::StateModule {
            name: $module,
            doc: concat!($($doc, "\n"),*),
            states: &[$($crate::StateFn::of::<$state>($name)),*],
            aggregate: $join,
            needs: &[$($need),*],
        };
    };
}
