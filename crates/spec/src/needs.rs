//! What a module cannot do without: Salt's `__virtual__`.
//!
//! A module whose program is missing does not exist: it is not listed, templates do not find it, and
//! a state of it «was not found», with the reason. The declaration stands at the head of the module
//! (`module! { "cron", needs = [Need::program("crontab", "…")]: … }`); the registry asks it.
//!
//! Nothing is remembered: a look at the `PATH` costs a few microseconds, is only made for modules
//! that are asked for, and a program that a state has just installed is there for the next one.

use crate::Cx;

/// One thing a module needs, and what is said when it is not there.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    what: What,
    /// Salt's words; empty where it gives no reason.
    reason: &'static str,
    /// Whether Salt does the work with a Python library, so that an installed package of it may be
    /// able to where we are not.
    library: bool,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// Any one of these programs.
    Program(&'static [&'static str]),
    /// An execution function: what a state works with.
    Function(&'static str),
    /// Anything else.
    Test(fn(&Cx) -> bool),
}

impl Need {
    /// A program on the `PATH`, or any one of several.
    pub const fn program(any: &'static [&'static str], reason: &'static str) -> Self {
        Self { what: What::Program(any), reason, library: false }
    }

    /// An execution function that can be called, whoever brings it.
    pub const fn function(name: &'static str, reason: &'static str) -> Self {
        Self { what: What::Function(name), reason, library: false }
    }

    pub const fn test(test: fn(&Cx) -> bool, reason: &'static str) -> Self {
        Self { what: What::Test(test), reason, library: false }
    }

    /// As [`Need::program`], where Salt has a Python library in its place.
    pub const fn for_library(any: &'static [&'static str], reason: &'static str) -> Self {
        Self { what: What::Program(any), reason, library: true }
    }

    /// Tells whether a package of Salt may have what we cannot offer without these.
    pub fn has_library(needs: &[Self]) -> bool {
        needs.iter().any(|need| need.library)
    }

    fn is_met(&self, cx: &Cx) -> bool {
        match self.what {
            What::Program(any) => any.iter().any(|program| cx.host.which(program).is_some()),
            What::Function(name) => cx.runtime.has(cx, name),
            What::Test(test) => test(cx),
        }
    }

    /// Returns the reason of the first need that is not met: why the module does not exist here.
    pub fn unmet(needs: &[Self], cx: &Cx) -> Option<&'static str> {
        needs.iter().find(|need| !need.is_met(cx)).map(|need| need.reason)
    }
}
