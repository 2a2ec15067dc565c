//! The native functions and states, by name.

use std::{collections::HashMap, sync::LazyLock};

use halite_highstate::{Params, States};
use halite_spec::{
    Aggregate, Call, Cx, Error, Function, Outcome, Param, Result, StateFn, StateModule,
};

static FUNCTIONS: LazyLock<HashMap<String, &'static Function>> = LazyLock::new(|| {
    let modules = halite_modules::ALL.iter();
    let functions = modules.flat_map(|module| {
        module
            .functions
            .iter()
            .map(|function| (format!("{}.{}", module.name, function.name), *function))
    });
    functions.collect()
});

static STATES: LazyLock<HashMap<String, &'static StateFn>> = LazyLock::new(|| {
    let states = halite_states::ALL.iter().flat_map(|module| {
        module.states.iter().map(|state| (format!("{}.{}", module.name, state.name), state))
    });
    states.collect()
});

/// Returns the native function of that name.
pub fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name).copied()
}

/// Returns the names of all native functions, sorted.
pub fn function_names() -> Vec<String> {
    let mut names: Vec<String> = FUNCTIONS.keys().cloned().collect();
    names.sort();
    names
}

/// Returns the native state of that name.
pub fn state(name: &str) -> Option<&'static StateFn> {
    STATES.get(name).copied()
}

/// Returns the names of all native states, sorted.
pub fn state_names() -> Vec<String> {
    let mut names: Vec<String> = STATES.keys().cloned().collect();
    names.sort();
    names
}

fn state_module(name: &str) -> Option<&'static StateModule> {
    halite_states::ALL.iter().copied().find(|module| module.name == name)
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
    fn has(&self, state: &str) -> bool {
        STATES.contains_key(state)
    }

    fn missing_reason(&self, _: &str) -> Option<String> {
        None
    }

    fn names(&self) -> Vec<String> {
        state_names()
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
        }
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
