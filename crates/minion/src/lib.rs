//! The minion: everything behind `salt-call` and `salt-minion`.
//!
//! - [`registry`] knows the native functions and states by name;
//! - [`Engine`] is the [`Runtime`](halite_spec::Runtime) content reaches through its `Cx`: calls by
//!   name, rendering, events, the state engine;
//! - [`states`] compiles and runs states for the `state` module;
//! - [`caller`] builds a `Cx` from a configuration and runs one function, as `salt-call` does;
//! - [`daemon`] is `salt-minion`: sign-in, publications, jobs, returns, and the master as seen from
//!   here (files, pillar, requests), which `salt-call` uses too.

mod alone;
mod barred;
pub mod caller;
pub mod daemon;
mod engine;
mod executors;
pub mod failure;
pub mod kinds;
mod masterless;
mod matching;
pub mod others;
mod proc;
pub mod proxy;
pub mod python;
pub mod registry;
mod rendering;
mod states;

pub use alone::Alone;
pub use caller::Caller;
pub use engine::{Engine, Link, Parts, Rendering, Sources};
pub use masterless::Masterless;
pub use python::Python;
pub use rendering::Pipes;

/// Collects the built-in grains that take no time: for programs that only look.
pub fn plain_grains(host: &dyn halite_spec::Host, opts: &halite_value::Dict) -> halite_value::Dict {
    halite_grains::Collector::new().without("fqdns").collect(host, opts).grains
}
