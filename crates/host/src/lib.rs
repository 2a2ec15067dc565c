//! The only door to the machine: files, processes, users, clock.
//!
//! Content speaks to `halite_spec::Host`; here are its twins. [`Os`] is the real machine: it
//! replaces files as one step, ends children with their whole group, and obeys a [`Cancel`] token.
//! [`Fake`] is a machine in memory for tests, and [`Failing`] fails the nth call of another host.
//!
//! `unsafe` code stands between fork and exec, around the C library's account enumeration and where
//! memory is given back, each with its reason. Absent: any knowledge of Salt.

mod cancel;
mod failing;
pub mod fake;
mod os;
mod snapshot;

pub use cancel::Cancel;
pub use failing::Failing;
pub use fake::Fake;
pub use os::{Os, memory::give_back};
pub use snapshot::write_snapshot;
