//! Things that exist only while a program runs: functions, macros, undefined values, views.
//!
//! `value` knows how they print and compare, nothing more; the template engine, which makes them,
//! finds its own types again through [`Object::as_any`]. Codecs refuse them with an error.

use std::{any::Any, fmt};

use crate::Value;

/// A run-time object inside a [`Value`].
pub trait Object: Any + Send + Sync + fmt::Debug {
    fn as_any(&self) -> &dyn Any;

    /// Returns the name Python shows for the type: `function`, `Macro`, `dict_keys` …
    fn type_name(&self) -> &str;

    fn repr(&self) -> String;

    fn str(&self) -> String {
        self.repr()
    }

    fn truthy(&self) -> bool {
        true
    }

    /// Tells equality beyond identity, which the caller has checked already.
    fn equals(&self, _other: &Value) -> bool {
        false
    }
}
