//! Runners and wheel functions: what `salt-run` and the master itself can do.
//!
//! One file per Salt module, as in the crate `modules`; wheel functions in the folder `wheel`. A
//! runner works with a `Cx` whose options are the master's, and reaches a running master by its
//! control socket (`master.rs`), whether it runs in `salt-run` or in the master.

use halite_spec::{Function, Module};

// gen:begin
pub mod auth;
pub mod batch;
pub mod cache;
pub mod cluster;
pub mod config;
pub mod doc;
pub mod error;
pub mod event;
pub mod fileserver;
pub mod git_pillar;
pub mod http;
pub mod jobs;
pub mod manage;
mod master;
pub mod r#match;
pub mod mine;
mod minion_bus;
pub mod network;
pub mod pillar;
pub mod pki;
pub mod queue;
pub mod reactor;
pub mod salt;
pub mod saltmod;
pub mod saltutil;
pub mod sdb;
mod ssh;
pub mod state;
mod steps;
pub mod survey;
pub mod test;
pub mod wheel;
mod work;

/// Every module of this crate.
pub static ALL: &[&Module] = &[
    &auth::MODULE,
    &batch::MODULE,
    &cache::MODULE,
    &cluster::MODULE,
    &config::MODULE,
    &doc::MODULE,
    &error::MODULE,
    &event::MODULE,
    &fileserver::MODULE,
    &git_pillar::MODULE,
    &http::MODULE,
    &jobs::MODULE,
    &manage::MODULE,
    &r#match::MODULE,
    &mine::MODULE,
    &network::MODULE,
    &pillar::MODULE,
    &pki::MODULE,
    &queue::MODULE,
    &reactor::MODULE,
    &salt::MODULE,
    &saltutil::MODULE,
    &sdb::MODULE,
    &state::MODULE,
    &survey::MODULE,
    &test::MODULE,
];
// gen:end

pub use master::answer;
pub use saltmod::STATES;

/// The tag of a local event whose data is to be printed.
pub const PRINT: &str = "halite/print";

fn find(modules: &[&'static Module], name: &str) -> Option<&'static Function> {
    let (module, function) = name.split_once('.')?;
    let module = modules.iter().find(|own| own.name == module)?;
    module.functions.iter().find(|own| own.name == function).copied()
}

fn names(modules: &[&'static Module]) -> Vec<(String, &'static Function)> {
    let mut all: Vec<_> = modules
        .iter()
        .flat_map(|module| {
            let name = |function: &Function| format!("{}.{}", module.name, function.name);
            module.functions.iter().map(move |function| (name(function), *function))
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// Returns the runner function of that name.
pub fn runner(name: &str) -> Option<&'static Function> {
    find(ALL, name)
}

/// Returns the wheel function of that name.
pub fn wheel_function(name: &str) -> Option<&'static Function> {
    find(wheel::ALL, name)
}

/// Returns all runner functions by name, sorted.
pub fn runners() -> Vec<(String, &'static Function)> {
    names(ALL)
}

/// Returns all wheel functions by name, sorted.
pub fn wheel_functions() -> Vec<(String, &'static Function)> {
    names(wheel::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_documented() {
        assert!(runner("jobs.lookup_jid").is_some() && runner("jobs").is_none());
        assert!(
            wheel_function("key.list_all").is_some() && wheel_function("jobs.active").is_none()
        );
        for (name, function) in runners().into_iter().chain(wheel_functions()) {
            assert!(!function.doc.trim().is_empty(), "{name} is not explained");
        }
    }
}
