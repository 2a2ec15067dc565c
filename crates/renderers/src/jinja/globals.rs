//! Functions that every template can call.

use std::sync::LazyLock;

use halite_value::{Dict, SmolStr, Value};
use parking_lot::Mutex;

use super::{
    call::{Args, Signature},
    error::{Class, Error, type_error, value_error},
    eval::{Interp, Result, Vars},
    methods,
    objects::*,
};

/// The largest `range` that the sandbox lets pass.
const MAX_RANGE: usize = 100_000;

const GLOBALS: &[Builtin] = &[
    Builtin { name: "range", repr: "<function safe_range at 0x7f0000000000>", call: range },
    Builtin { name: "dict", repr: "<class 'dict'>", call: dict },
    Builtin { name: "odict", repr: "<class 'collections.OrderedDict'>", call: odict },
    Builtin { name: "namespace", repr: "<class 'jinja2.utils.Namespace'>", call: namespace },
    Builtin { name: "cycler", repr: "<class 'jinja2.utils.Cycler'>", call: cycler },
    Builtin { name: "joiner", repr: "<class 'jinja2.utils.Joiner'>", call: joiner },
    Builtin {
        name: "lipsum",
        repr: "<function generate_lorem_ipsum at 0x7f0000000000>",
        call: lipsum,
    },
    Builtin { name: "raise", repr: "<function jinja_raise at 0x7f0000000000>", call: raise },
    Builtin { name: "ifelse", repr: "<function ifelse at 0x7f0000000000>", call: ifelse },
    Builtin {
        name: "show_full_context",
        repr: "<function show_full_context at 0x7f0000000000>",
        call: show_full_context,
    },
];

static VALUES: LazyLock<Vars> = LazyLock::new(|| {
    GLOBALS
        .iter()
        .map(|own| {
            let value = object(Builtin { name: own.name, repr: own.repr, call: own.call });
            (SmolStr::new(own.name), value)
        })
        .collect()
});

/// Returns the globals that every rendering starts with.
pub(crate) fn globals() -> &'static Vars {
    &VALUES
}

#[expect(clippy::needless_pass_by_value, reason = "all functions of the table have this shape")]
fn range(_: &mut Interp<'_>, args: Args) -> Result<Value> {
    if !args.keyword.is_empty() {
        return Err(type_error("safe_range() got an unexpected keyword argument"));
    }
    let mut ints = Vec::new();
    for value in &args.positional {
        ints.push(methods::index(value)?);
    }
    let range = match ints[..] {
        [stop] => Range { start: 0, stop, step: 1 },
        [start, stop] => Range { start, stop, step: 1 },
        [_, _, 0] => return Err(value_error("range() arg 3 must not be zero")),
        [start, stop, step] => Range { start, stop, step },
        [] => return Err(type_error("range expected at least 1 argument, got 0")),
        _ => {
            let given = ints.len();
            return Err(type_error(format!("range expected at most 3 arguments, got {given}")));
        }
    };
    if range.len() > MAX_RANGE {
        return Err(Error::new(
            Class::OverflowError,
            format!(
                "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE})."
            ),
        ));
    }
    Ok(object(range))
}

fn dict(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    let dict = Dict::new();
    methods::update_dict(interp, &dict, args, "dict")?;
    Ok(Value::Dict(dict))
}

fn odict(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    let dict = Dict::new();
    methods::update_dict(interp, &dict, args, "OrderedDict")?;
    dict.set_ordered();
    Ok(Value::Dict(dict))
}

fn namespace(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    let dict = Dict::new();
    methods::update_dict(interp, &dict, args, "dict")?;
    Ok(object(Namespace(dict)))
}

fn cycler(_: &mut Interp<'_>, args: Args) -> Result<Value> {
    if args.positional.is_empty() {
        return Err(Error::new(Class::RuntimeError, "at least one item has to be provided"));
    }
    Ok(object(Cycler { items: args.positional, at: Mutex::new(0) }))
}

fn joiner(_: &mut Interp<'_>, args: Args) -> Result<Value> {
    let mut bound = Signature::new("Joiner.__init__(!self, sep=)").bind(args)?;
    let separator = bound.opt(0).unwrap_or_else(|| Value::str(", "));
    Ok(object(Joiner { separator, used: Mutex::new(false) }))
}

/// Some text to fill a page with.
///
/// differs: Jinja draws random words; ours are always the same.
fn lipsum(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    const WORDS: &str = "lorem ipsum dolor sit amet consectetuer adipiscing elit sed diam nonummy nibh \
                         euismod tincidunt ut laoreet dolore magna aliquam erat volutpat";
    let mut bound = Signature::new("generate_lorem_ipsum(n=, html=, min=, max=)").bind(args)?;
    let count = bound.opt(0).map(|count| methods::index(&count)).transpose()?.unwrap_or(5);
    let html = bound.opt(1).is_none_or(|html| html.truthy());
    let words = bound.opt(2).map(|words| methods::index(&words)).transpose()?.unwrap_or(20);
    let (count, words) =
        (usize::try_from(count).unwrap_or(0), usize::try_from(words).unwrap_or(20));
    interp.room(count.saturating_mul(words).saturating_mul(10))?;
    let text: Vec<&str> = WORDS.split_whitespace().cycle().take(words).collect();
    let paragraph = methods::str::capitalize(&text.join(" ")) + ".";
    Ok(if html {
        markup(vec![format!("<p>{paragraph}</p>"); count].join("\n"))
    } else {
        Value::from(vec![paragraph; count].join("\n\n"))
    })
}

fn raise(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    let mut bound = Signature::new("jinja_raise(msg)").bind(args)?;
    let message = interp.str_of(&bound.take(0))?;
    Err(Error::new(Class::TemplateError, message.as_str()))
}

/// `ifelse(target, value, …, default)`: the first value whose target matches this minion.
///
/// Only flags can be decided here; targets are matched by `match.ifelse` of the minion, if there is
/// one.
fn ifelse(interp: &mut Interp<'_>, mut args: Args) -> Result<Value> {
    let salt = interp.current.as_ref().and_then(|context| context.get("salt"));
    if let Some(salt) = salt
        && let Some(lookup) = salt.as_object::<HostLookup>()
        && let Some(function) = lookup.0.item("match.ifelse")
    {
        return interp.call(&function, args);
    }
    if args.positional.len().is_multiple_of(2) {
        return Err(Error::other(
            "SaltException",
            "The ifelse function must have an odd number of arguments!",
        ));
    }
    let default = args.positional.pop().unwrap_or_default();
    for pair in args.positional.chunks(2) {
        match &pair[0] {
            Value::Bool(true) => return Ok(pair[1].clone()),
            Value::Bool(false) => {}
            target if text_of(target).is_some_and(|target| target == "*") => {
                return Ok(pair[1].clone());
            }
            _ => {
                return Err(Error::other(
                    "CommandExecutionError",
                    "ifelse cannot match a target here: this program has no function match.ifelse",
                ));
            }
        }
    }
    Ok(default)
}

/// Returns all variables, as far as they are plain data.
fn show_full_context(interp: &mut Interp<'_>, args: Args) -> Result<Value> {
    Signature::new("show_full_context(!ctx)").bind(args)?;
    let all = interp.current.as_ref().map(|context| context.all());
    let dict = Dict::new();
    for (name, value) in all.iter().flat_map(|all| all.iter()) {
        dict.insert(name, simple(value, 0));
    }
    Ok(Value::Dict(dict))
}

/// Everything that is no plain data becomes its `repr`.
fn simple(value: &Value, depth: usize) -> Value {
    if depth > 100 {
        return Value::str("...");
    }
    match value {
        Value::List(list) => Value::list(list.to_vec().iter().map(|item| simple(item, depth + 1))),
        Value::Tuple(items) => Value::list(items.iter().map(|item| simple(item, depth + 1))),
        Value::Dict(dict) => {
            let entries = dict.entries().into_iter();
            Value::Dict(entries.map(|(key, value)| (key, simple(&value, depth + 1))).collect())
        }
        Value::Object(object) => match text_of(value) {
            Some(text) => Value::Str(text.clone()),
            None => Value::from(object.repr()),
        },
        other => other.clone(),
    }
}
