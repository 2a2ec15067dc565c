//! The native functions and states, by name.
//!
//! [`function`] and [`state`] are about what the binary has; [`function_here`], [`state_here`] and
//! the lists of names leave out what this machine lacks the programs for, and [`missing`] says why.

use halite_highstate::{Params, States};
use halite_spec::{
    Aggregate, Call, Cx, Error, Function, Keys, Module, Need, Outcome, Param, Result, StateFn,
    StateModule,
};
use halite_value::{Dict, Value, entries};

use crate::others;

/// Returns the native function of that name.
// Looked up in two steps, for an index of all would have every command read every declaration.
pub fn function(name: &str) -> Option<&'static Function> {
    let (module, name) = name.split_once('.')?;
    let functions = function_module(module)?.functions;
    functions.iter().copied().find(|function| function.name == name)
}

/// Returns the names of all native functions, sorted.
pub fn function_names() -> Vec<String> {
    let names = halite_modules::ALL.iter().flat_map(|module| {
        module.functions.iter().map(|function| format!("{}.{}", module.name, function.name))
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the native state of that name.
pub fn state(name: &str) -> Option<&'static StateFn> {
    let (module, name) = name.split_once('.')?;
    state_module(module)?.states.iter().find(|state| state.name == name)
}

/// Returns the names of all native states, sorted.
pub fn state_names() -> Vec<String> {
    let names = state_modules().flat_map(|module| {
        module.states.iter().map(|state| format!("{}.{}", module.name, state.name))
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn module_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn function_module(name: &str) -> Option<&'static Module> {
    let all = halite_modules::ALL;
    all.binary_search_by(|module| module.name.cmp(name)).ok().map(|at| all[at])
}

/// Says why the module of a function or state does not exist on this machine, in Salt's words;
/// `None` if it does, or if the binary has no such module anyway.
pub fn missing(cx: &Cx, kind: &str, name: &str) -> Option<String> {
    let module = module_of(name);
    let needs = needs(kind, module)?;
    if cx.is_proxy() && is_of_machine(kind, module) {
        return Some(format!("'{module}' __virtual__ returned False: this is a proxy minion"));
    }
    let said = format!("'{module}' __virtual__ returned False");
    Need::unmet(needs, cx).map(|reason| match reason {
        "" => said,
        reason => format!("{said}: {reason}"),
    })
}

/// As [`missing`], if a package of Salt would not have it either: only where Salt works with a
/// Python library in place of our program may it.
pub fn missing_anyhow(cx: &Cx, kind: &str, name: &str) -> Option<String> {
    let module = module_of(name);
    let may_have = needs(kind, module).is_some_and(Need::has_library)
        || cx.is_proxy() && is_of_machine(kind, module);
    missing(cx, kind, name).filter(|_| !may_have)
}

/// Modules that are about the machine they run on. A proxy minion has them only if somebody brings
/// some for its device: a package that is asked for must not be installed here instead.
const OF_MACHINE: [(&str, &[&str]); 2] = [
    (
        "modules",
        &[
            "group",
            "kernelpkg",
            "kmod",
            "lowpkg",
            "pkg",
            "service",
            "shadow",
            "sysctl",
            "user",
            "xfs",
        ],
    ),
    ("states", &["group", "kmod", "pkg", "pkgrepo", "service", "sysctl", "user"]),
];

fn is_of_machine(kind: &str, module: &str) -> bool {
    OF_MACHINE.iter().any(|(own, modules)| *own == kind && modules.contains(&module))
}

fn needs(kind: &str, module: &str) -> Option<&'static [Need]> {
    match kind {
        "states" => state_module(module).map(|module| module.needs),
        "modules" => function_module(module).map(|module| module.needs),
        _ => None,
    }
}

/// Tells whether there is a native execution module of that name on this machine.
pub fn has_module(cx: &Cx, name: &str) -> bool {
    function_module(name).is_some_and(|module| Need::unmet(module.needs, cx).is_none())
}

/// Returns the native function of that name, if its module exists on this machine.
pub fn function_here(cx: &Cx, name: &str) -> Option<&'static Function> {
    function(name).filter(|_| missing(cx, "modules", name).is_none())
}

/// Returns the native state of that name, if its module exists on this machine.
pub fn state_here(cx: &Cx, name: &str) -> Option<&'static StateFn> {
    state(name).filter(|_| missing(cx, "states", name).is_none())
}

/// Takes the names out whose module does not exist on this machine; they come sorted.
fn here(cx: &Cx, kind: &str, names: Vec<String>) -> Vec<String> {
    let mut last = (String::new(), true);
    let is_here = |name: &String| {
        let module = module_of(name);
        if last.0 != module {
            last = (module.to_owned(), missing(cx, kind, name).is_none());
        }
        last.1
    };
    names.into_iter().filter(is_here).collect()
}

/// Returns the names of the native functions this machine has, sorted.
pub fn function_names_here(cx: &Cx) -> Vec<String> {
    here(cx, "modules", function_names())
}

/// Returns the names of the native states this machine has, sorted.
pub fn state_names_here(cx: &Cx) -> Vec<String> {
    here(cx, "states", state_names())
}

/// Returns what users' Python is told about native functions: their names by kind, and in `needing`
/// the modules (`states.cron`) that do not exist everywhere, of which in `libraries` those that an
/// installed package may have all the same; in `machine` those that proxy minions lack.
pub fn natives() -> Dict {
    let modules = halite_modules::ALL.iter().map(|one| ("modules", one.name, one.needs));
    let states = state_modules().map(|one| ("states", one.name, one.needs));
    let named = |(kind, name, _): &(&str, &str, &[Need])| format!("{kind}.{name}");
    let machine = OF_MACHINE
        .iter()
        .flat_map(|(kind, all)| all.iter().map(move |module| format!("{kind}.{module}")));
    let needing: Vec<_> = modules.chain(states).filter(|(.., needs)| !needs.is_empty()).collect();
    let libraries = needing.iter().filter(|(.., needs)| Need::has_library(needs)).map(named);
    entries! {
        "modules" => Value::list(function_names()),
        "states" => Value::list(state_names()),
        "libraries" => Value::list(libraries),
        "machine" => Value::list(machine),
        "needing" => Value::list(needing.iter().map(named)),
    }
}

/// The states of this machine, and those of orchestrations.
fn state_modules() -> impl Iterator<Item = &'static StateModule> {
    halite_states::ALL.iter().copied().chain(others::steps())
}

fn state_module(name: &str) -> Option<&'static StateModule> {
    let all = halite_states::ALL;
    match all.binary_search_by(|module| module.name.cmp(name)) {
        Ok(at) => Some(all[at]),
        Err(_) => others::steps().filter(|steps| steps.name == name),
    }
}

/// State modules of Salt that react to `watch`; on every other one it is a `require`.
const WATCHING: [&str; 9] =
    ["at", "cmd", "etcd", "event", "module", "mount", "pkg", "service", "test"];

/// The native states, as the state engine wants them.
#[derive(Debug, Default)]
pub struct Native;

impl Native {
    fn find(state: &str) -> Result<&'static StateFn> {
        self::state(state).ok_or_else(|| Error::NotFound(state.to_owned()))
    }
}

impl States for Native {
    fn has(&self, cx: &Cx, state: &str) -> bool {
        state_here(cx, state).is_some()
    }

    fn missing_reason(&self, cx: &Cx, state: &str) -> Option<String> {
        missing(cx, "states", state)
    }

    fn names(&self, cx: &Cx) -> Vec<String> {
        state_names_here(cx)
    }

    fn params(&self, state: &str) -> Params {
        let Some(state) = self::state(state) else { return Params::default() };
        let params = (state.params)();
        let named = || params.iter().filter(|param| !param.rest);
        let all_names = |param: &Param| {
            std::iter::once(param.name)
                .chain(param.aliases.iter().copied())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Params {
            names: named().flat_map(all_names).collect(),
            required: named()
                .filter(|param| param.default.is_none() && param.aliases.is_empty())
                .map(|param| param.name.to_owned())
                .collect(),
            open: params.iter().any(|param| param.rest),
            closed: !state.open && !params.iter().any(|param| param.rest),
        }
    }

    fn keys(&self, state: &str) -> Keys {
        self::state(state).map_or(Keys::USUAL, |state| state.keys)
    }

    fn watches(&self, module: &str) -> bool {
        match state_module(module) {
            Some(module) => module.states.iter().any(|state| state.watch.is_some()),
            // What is not native may come from elsewhere; the order of the run must not depend on it.
            None => WATCHING.contains(&module),
        }
    }

    fn aggregate(&self, module: &str) -> Option<Aggregate> {
        state_module(module)?.aggregate
    }

    fn run(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        (Self::find(state)?.run)(cx, call, test).map(|(outcome, _)| outcome)
    }

    fn watch(&self, cx: &Cx, state: &str, call: Call, test: bool) -> Result<Outcome> {
        match Self::find(state)?.watch {
            Some(watch) => watch(cx, call, test),
            None => {
                let comment = format!("watch requisite is not implemented for {state}");
                Ok(Outcome::failed(comment))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules are searched by halves, so they stand in order, each once; so do their functions.
    #[test]
    fn everything_is_found_by_its_name() {
        assert!(halite_modules::ALL.is_sorted_by(|one, next| one.name < next.name));
        assert!(halite_states::ALL.is_sorted_by(|one, next| one.name < next.name));
        let names = function_names();
        assert!(names.is_sorted_by(|one, next| one < next), "no name twice");
        for name in &names {
            assert!(function(name).is_some_and(|found| name.ends_with(found.name)), "{name}");
        }
        let names = state_names();
        assert!(names.is_sorted_by(|one, next| one < next), "no name twice");
        for name in &names {
            assert!(state(name).is_some_and(|found| name.ends_with(found.name)), "{name}");
        }
        for module in OF_MACHINE[0].1 {
            assert!(function_module(module).is_some(), "{module}");
        }
        for module in OF_MACHINE[1].1 {
            assert!(state_module(module).is_some(), "{module}");
        }
        assert!(function("test").is_none() && function("test.").is_none());
        assert!(function("nothing.ping").is_none() && state("file").is_none());
    }
}
