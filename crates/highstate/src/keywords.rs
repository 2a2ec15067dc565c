//! The words of a state declaration that belong to the engine, not to the state.

pub use halite_spec::keywords::is_engine_keyword;
pub(crate) use halite_spec::keywords::{REQUISITE_IN_WORDS, REQUISITE_WORDS, RUNTIME_WORDS};

/// Requisites, in the order in which a state's edges are added to the graph.
pub(crate) const REQUISITES: [Requisite; 10] = [
    Requisite::Require,
    Requisite::RequireAny,
    Requisite::Watch,
    Requisite::WatchAny,
    Requisite::Prereq,
    Requisite::Onfail,
    Requisite::OnfailAny,
    Requisite::OnfailAll,
    Requisite::Onchanges,
    Requisite::OnchangesAny,
];

/// A kind of edge between two states. The order of the variants is their weight: a heavier
/// requisite decides the position of a state with several dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Requisite {
    Onfail,
    OnfailAny,
    OnfailAll,
    Require,
    RequireAny,
    Onchanges,
    OnchangesAny,
    Watch,
    WatchAny,
    Prereq,
}

impl Requisite {
    /// Tells whether it waits for a failure.
    pub(crate) fn is_onfail(self) -> bool {
        matches!(self, Self::Onfail | Self::OnfailAny | Self::OnfailAll)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Onfail => "onfail",
            Self::OnfailAny => "onfail_any",
            Self::OnfailAll => "onfail_all",
            Self::Require => "require",
            Self::RequireAny => "require_any",
            Self::Onchanges => "onchanges",
            Self::OnchangesAny => "onchanges_any",
            Self::Watch => "watch",
            Self::WatchAny => "watch_any",
            Self::Prereq => "prereq",
        }
    }
}

/// Words that a state may declare as its own argument although the engine reads them too.
const SHARED_WORDS: [&str; 9] = [
    "check_cmd",
    "creates",
    "onlyif",
    "unless",
    "runas",
    "umask",
    "saltenv",
    "parallel",
    "beacon_data",
];

/// Tells whether an engine keyword is passed on to a state that declares it.
pub(crate) fn is_shared(word: &str) -> bool {
    SHARED_WORDS.contains(&word)
}

/// Words whose loss would go unnoticed until the state runs when it should not, or as somebody else.
/// None is a letter away from what people pass to functions.
const GUARDS: [&str; 9] = [
    "onlyif",
    "unless",
    "check_cmd",
    "retry",
    "runas",
    "failhard",
    "parallel",
    "reload_modules",
    "fire_event",
];

/// Tells whether a word is one slip away from a guard.
pub(crate) fn is_slip_of_guard(word: &str) -> bool {
    GUARDS.iter().any(|guard| halite_value::suggest::is_one_slip(word, guard))
}

/// Every word an author may have meant by a misspelt requisite.
fn all_words() -> impl Iterator<Item = &'static str> {
    REQUISITE_WORDS.into_iter().chain(REQUISITE_IN_WORDS).chain(RUNTIME_WORDS)
}

/// Suggests the requisite an unknown argument may have meant.
pub(crate) fn suggest_keyword(word: &str) -> Option<&'static str> {
    halite_value::suggest::nearest(word, all_words())
}
