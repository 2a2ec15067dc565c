//! The renderer `toml`: text to data.
//!
//! A date and time becomes a timestamp (with an offset: the same moment in UTC); a date or a time
//! alone stays text, since [`Value`] has no type for them.

use std::time::Duration;

use ::toml::value::{Datetime, Offset};
use halite_value::{DateTime, Dict, Value};

use crate::pipeline::{Data, Error, RenderCx, Renderer, Text, need_text};

/// The renderer `toml`.
#[derive(Clone, Copy, Debug)]
pub struct Toml;

impl Renderer for Toml {
    fn name(&self) -> &str {
        "toml"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        let text = need_text(input, self.name())?;
        match text.as_str().parse::<::toml::Table>() {
            Ok(table) => Ok(Data::Value(dict(table))),
            Err(error) => Err(told(&error, &text)),
        }
    }
}

fn told(error: &::toml::de::Error, text: &Text) -> Error {
    let told = Error::of_class("DeserializationError", error.message().to_owned());
    let Some(before) = error.span().and_then(|span| text.as_str().get(..span.start)) else {
        return told;
    };
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
    told.at(text.place(line, column), text)
}

fn dict(table: ::toml::Table) -> Value {
    Value::Dict(table.into_iter().map(|(key, item)| (key, value(item))).collect::<Dict>())
}

fn value(item: ::toml::Value) -> Value {
    match item {
        ::toml::Value::String(text) => text.into(),
        ::toml::Value::Integer(int) => int.into(),
        ::toml::Value::Float(float) => float.into(),
        ::toml::Value::Boolean(flag) => flag.into(),
        ::toml::Value::Datetime(time) => {
            moment(&time).map_or_else(|| time.to_string().into(), Value::Timestamp)
        }
        ::toml::Value::Array(items) => Value::list(items.into_iter().map(value)),
        ::toml::Value::Table(table) => dict(table),
    }
}

/// Returns the moment, in UTC when its offset is known.
fn moment(time: &Datetime) -> Option<DateTime> {
    let offset = match time.offset {
        Some(Offset::Custom { minutes }) => minutes,
        Some(Offset::Z) | None => 0,
    };
    // A date or a time alone is no moment.
    time.date.and(time.time)?;
    let local: DateTime = Datetime { offset: None, ..*time }.to_string().parse().ok()?;
    let east = Duration::from_secs(u64::from(offset.unsigned_abs()) * 60);
    if offset < 0 { local.checked_add(east).ok() } else { local.checked_sub(east).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> Result<Data, Error> {
        let context = Dict::new();
        let cx = RenderCx { saltenv: "base", sls: "a", path: None, context: &context };
        Toml.render(Data::Text(Text::new("a.sls", text)), "", &cx)
    }

    #[test]
    fn tables_keep_their_order() {
        let text = "#!toml\nz = 1\na = [1.5, true]\n[t.u]\nk = 'v'\n[[l]]\nn = 1\n";
        let value = render(text).expect("TOML").into_value();
        let expected = "{'z': 1, 'a': [1.5, True], 't': {'u': {'k': 'v'}}, 'l': [{'n': 1}]}";
        assert_eq!(value.repr(), expected);
    }

    #[test]
    fn times_are_timestamps() {
        let text = "a = 2020-01-02T03:04:05\nb = 2020-01-02T03:04:05+01:00\nc = 2020-01-02\n";
        let value = render(text).expect("TOML").into_value();
        let expected = "{'a': datetime.datetime(2020, 1, 2, 3, 4, 5), 'b': datetime.datetime(2020, 1, 2, 2, 4, 5), 'c': '2020-01-02'}";
        assert_eq!(value.repr(), expected);
    }

    #[test]
    fn errors_have_a_place() {
        let error = render("a = 1\nb = \n").expect_err("no TOML");
        assert_eq!(error.place().map(|place| place.line), Some(2), "{error}");
    }
}
