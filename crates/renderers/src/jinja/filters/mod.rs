//! Filters: Jinja's own and Salt's.
//!
//! Each file has a table `FILTERS`: the name in templates, the signature as Python would print it in
//! an error, and the function. Where Salt replaces one of Jinja's (`min`, `unique`, `tojson` …), only
//! Salt's is here.

pub(crate) mod data;
mod dicts;
mod hash;
mod machine;
mod net;
mod query;
mod random;
mod regex;
mod sequence;
mod sets;
pub(crate) mod text;
pub(crate) mod time;
mod words;

use std::{collections::HashMap, sync::LazyLock};

use halite_value::{SmolStr, Value};

use super::{
    call::{Args, Bound, Signature},
    error::{Class, Error, Subject},
    eval::{Interp, Result},
    objects::*,
};

pub(crate) type FilterFn = fn(&mut Interp<'_>, &mut Bound) -> Result<Value>;

/// One row of a table of filters.
pub(crate) type Row = (&'static str, &'static str, FilterFn);

pub(crate) struct Filter {
    pub(crate) signature: Signature,
    pub(crate) run: FilterFn,
}

/// A filter that was found when the template was compiled.
#[derive(Clone)]
pub(crate) enum FilterRef {
    Builtin(&'static Filter),
    /// One that the embedding program added.
    Extra(SmolStr),
}

impl std::fmt::Debug for FilterRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Builtin(filter) => f.write_str(filter.signature.name()),
            Self::Extra(name) => f.write_str(name),
        }
    }
}

static FILTERS: LazyLock<HashMap<&'static str, Filter>> = LazyLock::new(|| {
    [
        text::FILTERS,
        sequence::FILTERS,
        words::FILTERS,
        data::FILTERS,
        dicts::FILTERS,
        hash::FILTERS,
        machine::FILTERS,
        net::FILTERS,
        query::FILTERS,
        random::FILTERS,
        regex::FILTERS,
        sets::FILTERS,
        time::FILTERS,
    ]
    .into_iter()
    .flatten()
    .map(|(name, signature, run)| {
        (*name, Filter { signature: Signature::new(signature), run: *run })
    })
    .collect()
});

pub(crate) fn find(name: &str) -> Option<FilterRef> {
    FILTERS.get(name).map(FilterRef::Builtin)
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILTERS.keys().copied()
}

impl Interp<'_> {
    /// Applies a filter; the value is the first argument.
    pub(crate) fn apply_filter(&mut self, filter: &FilterRef, args: Args) -> Result<Value> {
        self.step()?;
        match filter {
            FilterRef::Builtin(filter) => {
                let mut bound = filter.signature.bind(args)?;
                (filter.run)(self, &mut bound)
            }
            FilterRef::Extra(name) => match self.env.filters.get(name).cloned() {
                Some(callable) => callable.call(plain_args(args)),
                None => Err(no_filter(self, name)),
            },
        }
    }

    /// Applies a filter that is named at run time, as `map` does.
    pub(crate) fn apply_named(&mut self, name: &Value, args: Args) -> Result<Value> {
        let Some(name) = text_of(name) else {
            return Err(Error::new(
                Class::TemplateRuntimeError,
                format!("No filter named {}.", name.repr()),
            ));
        };
        match super::resolve::Names::filter(self.env, name) {
            Some(filter) => self.apply_filter(&filter, args),
            None => Err(no_filter(self, name)),
        }
    }
}

pub(crate) fn plain_args(args: Args) -> Args {
    Args {
        positional: args.positional.iter().map(plain).collect(),
        keyword: args.keyword.into_iter().map(|(name, value)| (name, plain(&value))).collect(),
    }
}

fn no_filter(interp: &Interp<'_>, name: &str) -> Error {
    let message = format!("No filter named {}.", halite_value::str_repr(name));
    Error::new(Class::TemplateRuntimeError, message)
        .about(Subject::Filter(name.to_owned()), super::resolve::Names::filter_names(interp.env))
}

pub(crate) fn argument_error(message: impl Into<String>) -> Error {
    Error::new(Class::FilterArgumentError, message)
}

/// Salt's filters hand an undefined inside the data on, instead of failing somewhere below.
pub(crate) fn first_undefined(interp: &Interp<'_>, value: &Value) -> Option<Value> {
    fn walk(value: &Value, depth: usize, found: &mut Vec<String>) {
        if depth > 100 || found.len() > 20 {
            return;
        }
        match value {
            Value::Object(_) => {
                if let Some(undefined) = undefined(value)
                    && undefined.strict
                {
                    found.push(undefined.message());
                }
            }
            Value::List(list) => list.read().iter().for_each(|item| walk(item, depth + 1, found)),
            Value::Tuple(items) => items.iter().for_each(|item| walk(item, depth + 1, found)),
            Value::Dict(dict) => dict.read().values().for_each(|item| walk(item, depth + 1, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, 0, &mut found);
    (!found.is_empty()).then(|| Undefined::value(interp.strict(), Missing::Hint(found.join("\n"))))
}

pub(crate) use regex::test_match;
pub(crate) use words::normal_path;
