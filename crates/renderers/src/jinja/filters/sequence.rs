//! Filters on sequences and mappings: Jinja's own.

use halite_value::Value;

use super::{Row, argument_error};
use crate::jinja::{
    call::{Args, Bound},
    error::{Class, Error, type_error},
    eval::{Interp, Result},
    iter::{PyIter, Stream},
    methods,
    objects::*,
    tests::TestRef,
};

pub(crate) const FILTERS: &[Row] = &[
    ("length", "len(obj)", |interp, args| interp.len(&args.take(0)).map(Value::from)),
    ("count", "len(obj)", |interp, args| interp.len(&args.take(0)).map(Value::from)),
    ("list", "sync_do_list(value)", |interp, args| interp.collect(&args.take(0)).map(Value::from)),
    ("first", "sync_do_first(!environment, seq)", |interp, args| {
        let mut iter = interp.iter(&args.take(0))?;
        Ok(match interp.next(&mut iter)? {
            Some(item) => item,
            None => hint(interp, "No first item, sequence was empty."),
        })
    }),
    ("last", "do_last(!environment, seq)", |interp, args| {
        let items = reversed(interp, &args.take(0))?;
        Ok(items
            .into_iter()
            .next()
            .unwrap_or_else(|| hint(interp, "No last item, sequence was empty.")))
    }),
    ("reverse", "do_reverse(value)", reverse),
    ("default", "do_default(value, default_value=, boolean=)", default),
    ("d", "do_default(value, default_value=, boolean=)", default),
    ("join", "sync_do_join(!eval_ctx, value, d=, attribute=)", join),
    ("sort", "do_sort(!environment, value, reverse=, case_sensitive=, attribute=)", sort),
    ("dictsort", "do_dictsort(value, case_sensitive=, by=, reverse=)", dictsort),
    (
        "groupby",
        "sync_do_groupby(!environment, value, attribute, default=, case_sensitive=)",
        groupby,
    ),
    ("sum", "sync_do_sum(!environment, iterable, attribute=, start=)", sum),
    ("items", "do_items(value)", items),
    ("batch", "do_batch(value, linecount, fill_with=)", batch),
    ("slice", "sync_do_slice(value, slices, fill_with=)", slice),
    ("attr", "do_attr(!environment, obj, name)", attr),
    ("map", "sync_do_map(!context, value, *args, **kwargs)", map),
    ("select", "sync_do_select(!context, value, *args, **kwargs)", |interp, args| {
        select(interp, args, true, false)
    }),
    ("reject", "sync_do_reject(!context, value, *args, **kwargs)", |interp, args| {
        select(interp, args, false, false)
    }),
    ("selectattr", "sync_do_selectattr(!context, value, *args, **kwargs)", |interp, args| {
        select(interp, args, true, true)
    }),
    ("rejectattr", "sync_do_rejectattr(!context, value, *args, **kwargs)", |interp, args| {
        select(interp, args, false, true)
    }),
];

fn hint(interp: &Interp<'_>, text: &str) -> Value {
    Undefined::value(interp.strict(), Missing::Hint(text.into()))
}

/// `reversed(value)`, as items.
fn reversed(interp: &mut Interp<'_>, value: &Value) -> Result<Vec<Value>> {
    if let Some(undefined) = undefined(value) {
        if undefined.strict {
            return Err(interp.undefined_error(undefined));
        }
        return Err(type_error("'Undefined' object is not reversible"));
    }
    let reversible = match value {
        Value::List(_) | Value::Tuple(_) | Value::Str(_) | Value::Bytes(_) | Value::Dict(_) => true,
        Value::Object(object) => {
            let any = object.as_any();
            any.is::<Markup>() || any.is::<Range>() || any.is::<View>() || any.is::<Group>()
        }
        _ => false,
    };
    if !reversible {
        return Err(type_error(format!("'{}' object is not reversible", value.type_name())));
    }
    let mut items = interp.collect(value)?;
    items.reverse();
    Ok(items)
}

fn reverse(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    if let Some(text) = text_of(&value) {
        let text: String = text.chars().rev().collect();
        return Ok(if is_markup(&value) { markup(text) } else { Value::from(text) });
    }
    let name = match &value {
        Value::List(_) => "list_reverseiterator",
        Value::Dict(_) => "dict_reversekeyiterator",
        Value::Object(object) if object.as_any().is::<Range>() => "range_iterator",
        _ => "reversed",
    };
    match reversed(interp, &value) {
        Ok(items) => Ok(interp.generator_of(name, items)),
        Err(error) if *error.class() == Class::TypeError => match interp.collect(&value) {
            Ok(mut items) => {
                items.reverse();
                Ok(Value::from(items))
            }
            Err(error) if *error.class() == Class::TypeError => {
                Err(argument_error("argument must be iterable"))
            }
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn default(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let instead = args.opt(1).unwrap_or_else(|| Value::str(""));
    let boolean = args.take(2);
    if undefined(&value).is_some() {
        return Ok(instead);
    }
    let boolean = interp.truthy(&boolean)?;
    Ok(if boolean && !interp.truthy(&value)? { instead } else { value })
}

/// A way into an item: `a.b.0`.
#[derive(Clone)]
pub(crate) struct Path {
    parts: Vec<Value>,
    default: Option<Value>,
    fold: bool,
}

impl Path {
    pub(crate) fn new(attribute: &Value, default: Option<Value>, fold: bool) -> Self {
        let default = default.filter(|default| !default.is_null());
        Self { parts: parts(attribute), default, fold }
    }

    pub(crate) fn get(&self, interp: &mut Interp<'_>, item: &Value) -> Result<Value> {
        let mut item = item.clone();
        for part in &self.parts {
            item = interp.item(&item, part)?;
            if let Some(default) = &self.default
                && undefined(&item).is_some()
            {
                item = default.clone();
            }
        }
        Ok(if self.fold { fold(item) } else { item })
    }
}

fn parts(attribute: &Value) -> Vec<Value> {
    match attribute {
        Value::Null => Vec::new(),
        other => match text_of(other) {
            Some(text) => text
                .split('.')
                .map(|part| match part.parse::<i64>() {
                    Ok(index) if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                        Value::Int(index)
                    }
                    _ => Value::str(part),
                })
                .collect(),
            None => vec![other.clone()],
        },
    }
}

/// Text in lower case; everything else as it is.
fn fold(value: Value) -> Value {
    match text_of(&value) {
        Some(text) => Value::from(text.to_lowercase()),
        None => value,
    }
}

fn join(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let separator_value = args.opt(1).unwrap_or_else(|| Value::str(""));
    let separator = interp.str_of(&separator_value)?;
    let path = args.opt(2).filter(|path| !path.is_null()).map(|path| Path::new(&path, None, false));
    let escaping = interp.current.as_ref().is_some_and(|context| context.autoescape());
    if escaping {
        return join_safe(interp, &value, &separator_value, path.as_ref());
    }
    let mut iter = interp.iter(&value)?;
    let mut out = String::new();
    let mut first = true;
    while let Some(item) = interp.next(&mut iter)? {
        let item = match &path {
            Some(path) => path.get(interp, &item)?,
            None => item,
        };
        if !first {
            out.push_str(&separator);
        }
        first = false;
        let text = interp.str_of(&item)?;
        out.push_str(&text);
        if out.len() > 1 << 16 {
            interp.room(out.len() / 64)?;
        }
    }
    interp.room(out.len())?;
    Ok(Value::from(out))
}

/// Joins where text is escaped: one safe piece makes the whole safe, and the others are escaped.
fn join_safe(
    interp: &mut Interp<'_>,
    value: &Value,
    separator: &Value,
    path: Option<&Path>,
) -> Result<Value> {
    let mut items = interp.collect(value)?;
    if let Some(path) = path {
        for item in &mut items {
            *item = path.get(interp, item)?;
        }
    }
    let safe = is_markup(separator) || items.iter().any(is_markup);
    let mut text = |value: &Value| -> Result<String> {
        if safe {
            super::text::escape(interp, value)
        } else {
            Ok(interp.str_of(value)?.to_string())
        }
    };
    let separator = text(separator)?;
    let parts: Result<Vec<String>> = items.iter().map(text).collect();
    let joined = parts?.join(&separator);
    interp.room(joined.len())?;
    Ok(if safe { markup(joined) } else { Value::from(joined) })
}

fn sort(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let reverse = args.take(1).truthy();
    let fold = !args.take(2).truthy();
    let attribute = args.take(3);
    let paths: Vec<Path> = match text_of(&attribute) {
        Some(text) => {
            text.split(',').map(|part| Path::new(&Value::str(part), None, fold)).collect()
        }
        None => vec![Path::new(&attribute, None, fold)],
    };
    let items = interp.collect(&value)?;
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let key = match &paths[..] {
            [path] => path.get(interp, &item)?,
            _ => {
                let mut keys = Vec::with_capacity(paths.len());
                for path in &paths {
                    keys.push(path.get(interp, &item)?);
                }
                Value::from(keys)
            }
        };
        keyed.push((key, item));
    }
    interp.sort(keyed, reverse).map(Value::from)
}

fn dictsort(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let case_sensitive = args.take(1).truthy();
    let by = args.opt(2).unwrap_or_else(|| Value::str("key"));
    let reverse = args.take(3).truthy();
    let by_value = match text_of(&by).map(halite_value::SmolStr::as_str) {
        Some("key") => false,
        Some("value") => true,
        _ => return Err(argument_error("You can only sort by either \"key\" or \"value\"")),
    };
    if let Some(undefined) = undefined(&value) {
        return Err(interp.undefined_error(undefined));
    }
    let Value::Dict(dict) = &value else {
        return Err(Error::new(
            Class::AttributeError,
            format!("'{}' object has no attribute 'items'", value.type_name()),
        ));
    };
    let mut keyed = Vec::new();
    for (key, value) in dict {
        let by = if by_value { value.clone() } else { key.value().clone() };
        let by = if case_sensitive { by } else { fold(by) };
        keyed.push((by, Value::tuple([key.into_value(), value])));
    }
    interp.sort(keyed, reverse).map(Value::from)
}

fn groupby(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let attribute = args.take(1);
    let default = args.opt(2);
    let case_sensitive = args.take(3).truthy();
    let by = Path::new(&attribute, default.clone(), !case_sensitive);
    let shown = Path::new(&attribute, default, false);
    let items = interp.collect(&value)?;
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        keyed.push((by.get(interp, &item)?, item));
    }
    let sorted = interp.sort(keyed, false)?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for item in sorted {
        let key = by.get(interp, &item)?;
        match groups.last_mut() {
            Some((own, items)) if interp.eq(own, &key)? => items.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::with_capacity(groups.len());
    for (_, items) in groups {
        let grouper = match items.first() {
            Some(first) => shown.get(interp, first)?,
            None => Value::Null,
        };
        out.push(object(Group { grouper, list: Value::from(items) }));
    }
    Ok(Value::from(out))
}

fn sum(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    use crate::jinja::ast::Op;
    let value = args.take(0);
    let path = args.opt(1).filter(|path| !path.is_null()).map(|path| Path::new(&path, None, false));
    let mut total = args.opt(2).unwrap_or(Value::Int(0));
    if text_of(&total).is_some() {
        return Err(type_error("sum() can't sum strings [use ''.join(seq) instead]"));
    }
    let mut iter = interp.iter(&value)?;
    while let Some(item) = interp.next(&mut iter)? {
        let item = match &path {
            Some(path) => path.get(interp, &item)?,
            None => item,
        };
        total = interp.binary(Op::Add, &total, &item)?;
    }
    Ok(total)
}

fn items(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let items = match &value {
        Value::Dict(dict) => View { dict: dict.clone(), kind: ViewKind::Items }.to_vec(),
        other if undefined(other).is_some() => Vec::new(),
        _ => return Err(type_error("Can only get item pairs from a mapping.")),
    };
    Ok(interp.generator_of("generator", items))
}

struct Batch {
    iter: PyIter,
    size: usize,
    fill: Option<Value>,
}

impl Stream for Batch {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        let mut items = Vec::new();
        while items.len() < self.size.max(1) {
            match interp.next(&mut self.iter)? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        if items.is_empty() {
            return Ok(None);
        }
        if let Some(fill) = &self.fill
            && items.len() < self.size
        {
            interp.room(self.size.saturating_mul(24))?;
            items.resize(self.size, fill.clone());
        }
        Ok(Some(Value::from(items)))
    }
}

fn batch(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let size = usize::try_from(methods::index(&args.take(1))?).unwrap_or(0);
    let fill = args.opt(2).filter(|fill| !fill.is_null());
    let iter = interp.iter(&value)?;
    let over = interp.iter(&value)?;
    interp.generator("generator", &[&over], Batch { iter, size, fill })
}

fn slice(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let items = interp.collect(&args.take(0))?;
    let slices = methods::index(&args.take(1))?;
    let fill = args.opt(2).filter(|fill| !fill.is_null());
    let slices = usize::try_from(slices).unwrap_or(0);
    if slices == 0 {
        return Err(Error::new(Class::ZeroDivisionError, "integer division or modulo by zero"));
    }
    interp.room(slices.saturating_mul(24))?;
    let (each, extra) = (items.len() / slices, items.len() % slices);
    let mut out = Vec::with_capacity(slices);
    let mut offset = 0;
    for number in 0..slices {
        let start = offset + number * each;
        offset += usize::from(number < extra);
        let end = offset + (number + 1) * each;
        let mut part = items[start..end].to_vec();
        if number >= extra {
            part.extend(fill.clone());
        }
        out.push(Value::from(part));
    }
    Ok(interp.generator_of("generator", out))
}

fn attr(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let name = args.take(1);
    let name = interp.str_of(&name)?;
    Ok(match interp.own_attribute(&value, &name)? {
        Some(found) => found,
        None => Undefined::value(interp.strict(), Missing::Of(value, Value::Str(name))),
    })
}

#[derive(Clone)]
enum Mapper {
    Path(Path),
    Filter(Value, Args),
}

struct Map {
    value: Option<Value>,
    iter: PyIter,
    mapper: Mapper,
}

impl Stream for Map {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        if !begin(interp, &mut self.value, &mut self.iter)? {
            return Ok(None);
        }
        let Some(item) = interp.next(&mut self.iter)? else { return Ok(None) };
        match &self.mapper {
            Mapper::Path(path) => path.get(interp, &item),
            Mapper::Filter(name, args) => {
                let mut args = args.clone();
                args.positional.insert(0, item);
                interp.apply_named(name, args)
            }
        }
        .map(Some)
    }
}

/// Starts iterating when the first item is asked for, as a Python generator does.
fn begin(interp: &mut Interp<'_>, value: &mut Option<Value>, iter: &mut PyIter) -> Result<bool> {
    if let Some(value) = value.take() {
        if !interp.truthy(&value)? {
            return Ok(false);
        }
        *iter = interp.iter(&value)?;
    }
    Ok(true)
}

/// Wraps a stream so that streams of streams are counted.
fn stream(interp: &mut Interp<'_>, value: &Value, stream: impl Stream + 'static) -> Result<Value> {
    let over = match value {
        Value::Object(object) if object.as_any().is::<Generator>() => {
            PyIter::Shared(object.clone())
        }
        _ => PyIter::empty(),
    };
    interp.generator("generator", &[&over], stream)
}

fn map(interp: &mut Interp<'_>, args: &mut Bound) -> Result<Value> {
    let value = args.take(0);
    let attribute = args.more.iter().position(|(name, _)| name == "attribute");
    let mapper = match attribute {
        Some(at) if args.rest.is_empty() => {
            let attribute = args.more.remove(at).1;
            let default = args.more.iter().position(|(name, _)| name == "default");
            let default = default.map(|at| args.more.remove(at).1);
            if let Some((name, _)) = args.more.first() {
                let name = halite_value::str_repr(name);
                return Err(argument_error(format!("Unexpected keyword argument {name}")));
            }
            Mapper::Path(Path::new(&attribute, default, false))
        }
        _ => {
            if args.rest.is_empty() {
                return Err(argument_error("map requires a filter argument"));
            }
            let name = args.rest.remove(0);
            Mapper::Filter(name, args.others())
        }
    };
    let map = Map { value: Some(value.clone()), iter: PyIter::empty(), mapper };
    stream(interp, &value, map)
}

struct Select {
    value: Option<Value>,
    iter: PyIter,
    path: Option<Path>,
    test: Option<(Value, Args)>,
    found: Option<TestRef>,
    wanted: bool,
}

impl Stream for Select {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        if !begin(interp, &mut self.value, &mut self.iter)? {
            return Ok(None);
        }
        while let Some(item) = interp.next(&mut self.iter)? {
            let seen = match &self.path {
                Some(path) => path.get(interp, &item)?,
                None => item.clone(),
            };
            let passed = match &self.test {
                None => interp.truthy(&seen)?,
                Some((name, args)) => {
                    let mut args = args.clone();
                    args.positional.insert(0, seen);
                    match &self.found {
                        Some(test) => interp.apply_test(test, args)?,
                        None => interp.apply_test_named(name, args)?,
                    }
                }
            };
            if passed == self.wanted {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

fn select(
    interp: &mut Interp<'_>,
    args: &mut Bound,
    wanted: bool,
    by_attribute: bool,
) -> Result<Value> {
    let value = args.take(0);
    let path = if by_attribute {
        if args.rest.is_empty() {
            return Err(argument_error("Missing parameter for attribute name"));
        }
        Some(Path::new(&args.rest.remove(0), None, false))
    } else {
        None
    };
    let (test, found) = if args.rest.is_empty() {
        (None, None)
    } else {
        let name = args.rest.remove(0);
        let found =
            text_of(&name).and_then(|name| crate::jinja::resolve::Names::test(interp.env, name));
        (Some((name, args.others())), found)
    };
    let select =
        Select { value: Some(value.clone()), iter: PyIter::empty(), path, test, found, wanted };
    stream(interp, &value, select)
}
