//! The words of a state declaration that belong to the engine, not to the state.
//!
//! They are here, not with the engine, because states ask too: what an author writes beside the
//! arguments of `file.managed` is a variable for its template, unless it is one of these.

/// Words that name other states; each takes a list of one-key dicts.
pub const REQUISITE_WORDS: [&str; 13] = [
    "onfail",
    "onfail_any",
    "onfail_all",
    "require",
    "require_any",
    "onchanges",
    "onchanges_any",
    "watch",
    "watch_any",
    "prereq",
    "prerequired",
    "listen",
    "onfail_stop",
];

/// Words that add a requisite to another state.
pub const REQUISITE_IN_WORDS: [&str; 6] =
    ["onchanges_in", "onfail_in", "prereq_in", "watch_in", "require_in", "listen_in"];

/// Words about when and how a state runs.
pub const RUNTIME_WORDS: [&str; 24] = [
    "fun",
    "state",
    "check_cmd",
    "cmd_opts_exclude",
    "failhard",
    "onlyif",
    "unless",
    "creates",
    "retry",
    "order",
    "parallel",
    "reload_modules",
    "reload_grains",
    "reload_pillar",
    "force_reload_modules",
    "runas",
    "runas_password",
    "no_log",
    "fire_event",
    "saltenv",
    "umask",
    "use",
    "use_in",
    "aggregate",
];

/// Tells whether a word of a low chunk is for the engine, so that a state need not know it.
pub fn is_engine_keyword(word: &str) -> bool {
    word.starts_with("__")
        || RUNTIME_WORDS.contains(&word)
        || REQUISITE_WORDS.contains(&word)
        || REQUISITE_IN_WORDS.contains(&word)
        || matches!(
            word,
            "names" | "name_order" | "sfun" | "provider" | "beacon" | "beacon_data" | "retcode"
        )
}

/// Returns what a low chunk holds beside the arguments of its state and the engine's words.
pub fn strays(low: &halite_value::Dict, params: &[crate::Param]) -> halite_value::Dict {
    let is_declared =
        |word: &str| params.iter().any(|param| param.name == word || param.aliases.contains(&word));
    let entries = low.entries().into_iter();
    entries
        .filter(|(key, _)| {
            key.as_str().is_some_and(|word| !is_declared(word) && !is_engine_keyword(word))
        })
        .collect()
}
