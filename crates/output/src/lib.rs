//! Outputters: a value and a style in, text out.
//!
//! The terminal, the API, `salt.out` in templates and the log share them, and recorded answers of
//! genuine Salt test them. One file per outputter; each is a function from a [`Value`] and a
//! [`Style`] to text, and [`OUTPUTTERS`] at the foot of this file names them all.
//!
//! How a return becomes text:
//! 1. [`select::choose`] picks the name: what the user asked for, else what the function declares;
//! 2. [`format()`] finds the outputter, falling back to `nested` when the name is unknown;
//! 3. an outputter that cannot show the data answers [`Unfit`]; then `nested` shows it, and if that
//!    cannot either (a list that contains itself), `raw` does.
//!
//! Surprising: a return of the wrong shape is no error anywhere here. Genuine Salt catches its own
//! `KeyError`, `TypeError` and `AttributeError` in the same place, so a state result that lacks its
//! `changes` turns a whole highstate report into nested output. Scripts and eyes know that.
//!
//! Absent on purpose: where the text goes, exit codes, reading configuration or theme files, and
//! the clock. Users' own outputters join through [`Registry`].

mod highstate;
mod json;
mod key;
mod nested;
mod newline_values_only;
mod no_return;
mod overstatestage;
mod plain;
mod pprint;
mod profile;
mod progress;
mod pyformat;
mod python;
mod quiet;
mod raw;
pub mod select;
mod style;
mod table;
mod textwrap;
mod txt;
mod virt_query;
mod yaml;

use halite_value::Value;
pub use pprint::pformat;
pub use style::{Color, Colors, Indent, Style, Table, Tabular};

/// Turns a return into text. Decides nothing else: not where it goes, not the exit code.
pub trait Outputter: Sync {
    /// Returns the text; an error if this outputter cannot show such data.
    fn text(&self, ret: &Value, style: &Style) -> Result<String, Unfit>;
}

/// The data has not the shape that this outputter shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the outputter cannot display data of this shape")]
pub struct Unfit;

/// Where outputters are looked up by name; the seam for users' own ones, which win over ours.
pub trait Registry {
    fn find(&self, name: &str) -> Option<&dyn Outputter>;
}

/// Knows the outputters of this crate.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Registry for BuiltIn {
    fn find(&self, name: &str) -> Option<&dyn Outputter> {
        by_name(name).map(|outputter| outputter as &dyn Outputter)
    }
}

/// Returns the outputter of this name, as `--out` takes it.
pub fn by_name(name: &str) -> Option<&'static dyn Outputter> {
    OUTPUTTERS.iter().find(|(own, _)| *own == name).map(|(_, outputter)| outputter as _)
}

/// Returns the names of all outputters, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    OUTPUTTERS.iter().map(|(name, _)| *name)
}

/// Returns the text of a value, without trailing white space, as Salt's `out_format`.
pub fn format(name: &str, ret: &Value, style: &Style) -> String {
    format_in(&BuiltIn, name, ret, style)
}

/// As [`format()`], with outputters from elsewhere.
pub fn format_in(registry: &dyn Registry, name: &str, ret: &Value, style: &Style) -> String {
    // differs: Salt's `key`, `table` and `no_return` end the program with a traceback at some data
    // they cannot show (`--out key test.ping`); here `nested` shows these as well.
    let try_one = |name: &str| registry.find(name)?.text(ret, style).ok();
    let mut text = try_one(name).or_else(|| try_one("nested")).unwrap_or_else(|| raw::text(ret));
    text.truncate(python::trim_end(&text).len());
    text
}

/// Returns the text of a value without colours, as Salt's `string_format`.
pub fn string_format(name: &str, ret: &Value, style: &Style) -> String {
    without_colors(&format(name, ret, style))
}

/// Returns the text of a value for a web page, as Salt's `html_format`. Only spaces and line ends
/// are replaced: markup in the data stays markup.
pub fn html_format(name: &str, ret: &Value, style: &Style) -> String {
    string_format(name, ret, style).replace(' ', "&nbsp;").replace('\n', "<br />")
}

/// Returns the text of a value and a line end; nothing at all when the text is empty.
pub fn display(name: &str, ret: &Value, style: &Style) -> String {
    let mut text = format(name, ret, style);
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Returns the text without terminal sequences: everything from an ESC to the next `m` goes.
pub fn without_colors(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(escape) = rest.find('\x1b') {
        let Some(end) = rest[escape..].find('m') else { break };
        out.push_str(&rest[..escape]);
        rest = &rest[escape + end + 1..];
    }
    out + rest
}

/// Returns the text with every ESC made visible, so that data cannot drive the terminal.
pub fn strip_escapes(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\x1b') { text.replace('\x1b', "?").into() } else { text.into() }
}

/// Makes an outputter of a function that appends to a text.
struct Plain(fn(&Value, &Style, &mut String) -> Result<(), Unfit>);

impl Outputter for Plain {
    fn text(&self, ret: &Value, style: &Style) -> Result<String, Unfit> {
        let mut text = String::new();
        python::check_depth(ret)?;
        self.0(ret, style, &mut text)?;
        Ok(text)
    }
}

// differs: newline_values_only, overstatestage, profile, quiet and virt_query left Salt with 3008,
// which shows nested output under these names; people who come from 3006 still type them.
static OUTPUTTERS: [(&str, Plain); 17] = [
    ("highstate", Plain(highstate::render)),
    ("json", Plain(|ret, style, out| json::render(&plain::words(ret), style, out))),
    ("key", Plain(key::render)),
    ("nested", Plain(nested::render)),
    ("newline_values_only", Plain(newline_values_only::render)),
    ("no_out", Plain(quiet::render)),
    ("no_return", Plain(no_return::render)),
    ("overstatestage", Plain(overstatestage::render)),
    ("pprint", Plain(|ret, style, out| pprint::render(&plain::words(ret), style, out))),
    ("profile", Plain(profile::render)),
    ("progress", Plain(progress::render)),
    ("quiet", Plain(quiet::render)),
    ("raw", Plain(|ret, style, out| raw::render(&plain::words(ret), style, out))),
    ("table", Plain(table::render)),
    ("txt", Plain(|ret, style, out| txt::render(&plain::words(ret), style, out))),
    ("virt_query", Plain(virt_query::render)),
    ("yaml", Plain(|ret, style, out| yaml::render(&plain::words(ret), style, out))),
];

#[cfg(test)]
mod tests {
    use halite_value::{List, dict, list};

    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(names().is_sorted());
        assert!(names().all(|name| by_name(name).is_some()));
        assert!(by_name("text").is_none());
    }

    #[test]
    fn unknown_names_and_unfit_data_fall_back_to_nested() {
        let ret = dict! { "m" => list![1] };
        let nested = "m:\n    - 1";
        assert_eq!(format("dson", &ret, &Style::default()), nested);
        assert_eq!(format("key", &ret, &Style::default()), nested);
    }

    #[test]
    fn a_list_that_contains_itself_ends_as_raw() {
        let list = List::new();
        list.push(list.clone());
        for name in names().filter(|name| !["quiet", "no_out"].contains(name)) {
            assert_eq!(format(name, &Value::from(list.clone()), &Style::default()), "[[...]]");
        }
    }

    #[test]
    fn users_outputters_win() {
        struct Shout;
        impl Outputter for Shout {
            fn text(&self, ret: &Value, _: &Style) -> Result<String, Unfit> {
                Ok(format!("{ret}!\n\n"))
            }
        }
        struct Mine;
        impl Registry for Mine {
            fn find(&self, name: &str) -> Option<&dyn Outputter> {
                if name == "txt" { Some(&Shout) } else { BuiltIn.find(name) }
            }
        }
        assert_eq!(format_in(&Mine, "txt", &Value::from("hi"), &Style::default()), "hi!");
        assert_eq!(format_in(&Mine, "raw", &Value::from("hi"), &Style::default()), "hi");
    }

    #[test]
    fn colours_and_escapes_go() {
        assert_eq!(without_colors("a\x1b[0;31mred\x1b[0;0m \x1b[K"), "ared \x1b[K");
        assert_eq!(strip_escapes("a\x1b[2J"), "a?[2J");
        assert_eq!(
            html_format("txt", &Value::from("a b\nc"), &Style::default()),
            "a&nbsp;b<br />c"
        );
    }
}
