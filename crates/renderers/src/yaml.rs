//! The renderer `yaml`: text to data.
//!
//! Whatever is false in Python (nothing at all, `0`, an empty list) becomes an empty dict. A mistake
//! is told in PyYAML's words, but scanner errors without their position, as genuine Salt shows them;
//! the position, mapped to the author's file, is in [`Error::place`], and what most likely is
//! wrong in [`Error::hint`].

use halite_value::{
    Value, suggest,
    yaml::{self, ErrorKind, LoadOptions},
};

use crate::pipeline::{Data, Error, RenderCx, Renderer, need_text};

/// The renderer `yaml`.
#[derive(Clone, Copy, Debug)]
pub struct Yaml;

/// The renderer `yamlex`: keys may repeat, with `!aggregate` and `!reset`.
#[derive(Clone, Copy, Debug)]
pub struct YamlEx;

impl Renderer for YamlEx {
    fn name(&self) -> &str {
        "yamlex"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        let text = need_text(input, self.name())?;
        let map = |line, column| text.place(line, column);
        let options = LoadOptions {
            name: "<file>",
            places: true,
            place_map: Some(&map),
            extended: true,
            ..LoadOptions::default()
        };
        match yaml::load(text.as_str(), &options) {
            Ok(value) if value.truthy() => Ok(Data::Value(value)),
            Ok(_) => Ok(Data::Value(Value::dict())),
            Err(error) => {
                let told = Error::of_class("DeserializationError", error.to_string());
                Err(match error.place() {
                    Some(place) => told.at(place.clone(), &text),
                    None => told,
                })
            }
        }
    }
}

impl Renderer for Yaml {
    fn name(&self) -> &str {
        "yaml"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        let text = need_text(input, self.name())?;
        let map = |line, column| text.place(line, column);
        let options = LoadOptions {
            places: true,
            place_map: Some(&map),
            ordered: true,
            ..LoadOptions::default()
        };
        match yaml::load(text.as_str(), &options) {
            Ok(value) if value.truthy() => Ok(Data::Value(value)),
            Ok(_) => Ok(Data::Value(Value::dict())),
            Err(error) => {
                let told = match error.kind() {
                    ErrorKind::Scanner => Error::new(error.problem()),
                    ErrorKind::Parser | ErrorKind::Constructor | ErrorKind::Limit => {
                        Error::new(error.to_string())
                    }
                    other => Error::of_class(other.class(), error.to_string()),
                };
                let hint = hint(&error, text.as_str(), &map);
                let told = match error.place() {
                    Some(place) => told.at(place.clone(), &text),
                    None => told,
                };
                Err(match hint {
                    Some(hint) => told.with_hint(hint),
                    None => told,
                })
            }
        }
    }
}

/// Guesses what is wrong, from the message and the rendered text.
fn hint(
    error: &yaml::Error,
    text: &str,
    map: &dyn Fn(u32, u32) -> halite_value::Place,
) -> Option<String> {
    let mark = error.mark();
    let number = mark.map_or(0, |mark| mark.line);
    let lines = |number: u32| text.lines().nth(number as usize).unwrap_or_default();
    let above = number.checked_sub(1).map_or("", lines);
    if error.problem().starts_with("mapping values are not allowed")
        && lines(number).trim_start().starts_with("- ")
        && is_key_without_colon(above)
    {
        let place = map(number, 1);
        let key = above.trim();
        return Some(format!("a `:` is missing at the end of line {}, after `{key}`", place.line));
    }
    if error.problem().starts_with("found undefined alias") {
        let column = error.mark().map_or(0, |mark| mark.column as usize);
        let rest: String = lines(number).chars().skip(column).collect();
        if let Some(near) = near_anchor(text, &rest) {
            return Some(format!("did you mean `*{near}`?"));
        }
    }
    hint_of_line(error, lines(number)).map(str::to_owned)
}

/// Returns the anchor of a text that an alias may have meant.
fn near_anchor<'a>(text: &'a str, alias: &str) -> Option<&'a str> {
    let name = |after: &str| after.find(|c: char| !c.is_alphanumeric() && !"_-".contains(c));
    let cut = |after: &'a str| &after[..name(after).unwrap_or(after.len())];
    let alias = alias.strip_prefix('*')?;
    let alias = &alias[..name(alias).unwrap_or(alias.len())];
    suggest::nearest(alias, text.split('&').skip(1).map(cut).filter(|anchor| !anchor.is_empty()))
}

/// Tells whether a line is one word alone, such as `file.managed`.
fn is_key_without_colon(line: &str) -> bool {
    let word = line.trim();
    !word.is_empty() && !word.contains([' ', ':', '#', '"', '\''])
}

/// Guesses from the message and the line alone.
fn hint_of_line(error: &yaml::Error, line: &str) -> Option<&'static str> {
    let problem = error.problem();
    let column = error.mark().map_or(0, |mark| mark.column as usize);
    let at = line.chars().nth(column);
    if problem.starts_with("found character that cannot start any token") {
        return match at {
            Some('\t') => Some("a tab stands here; YAML is indented with spaces only"),
            Some('%') => Some("`%` cannot begin a value: put quotes around it"),
            Some('@' | '`') => {
                Some("`@` and the backtick cannot begin a value: put quotes around it")
            }
            _ => None,
        };
    }
    if problem.contains("tab character") {
        return Some("a tab stands here; YAML is indented with spaces only");
    }
    if problem.starts_with("found unacceptable key") {
        return Some("`{{` reached YAML: is a template variable not rendered, or a brace doubled?");
    }
    if problem.starts_with("mapping values are not allowed") {
        return Some(match line.trim_start().starts_with('-') || line.matches(": ").count() > 1 {
            true => "a value that contains `: ` needs quotes around it",
            false => {
                "this line is indented further than the one it belongs to, or a value holds `: `"
            }
        });
    }
    if problem.starts_with("found conflicting ID") {
        return Some("this key stands twice in the same mapping; the second would hide the first");
    }
    if problem.starts_with("could not find expected ':'") {
        return Some("a `:` is missing after the key, or a text is not closed by its quote");
    }
    if problem.starts_with("did not find expected key")
        || problem.starts_with("did not find expected '-' indicator")
    {
        return Some("compare the indentation with the lines before: they must begin alike");
    }
    if problem.starts_with("found unexpected end of stream") {
        return Some("a quote is opened and never closed");
    }
    if problem.starts_with("found undefined alias") {
        return Some("a value that begins with `*` needs quotes around it");
    }
    if problem.starts_with("could not determine a constructor for the tag") {
        return Some("a value that begins with `!` needs quotes around it");
    }
    None
}

#[cfg(test)]
mod tests {
    use halite_value::Dict;

    use super::*;
    use crate::pipeline::Text;

    fn failure(text: &str) -> Error {
        let context = Dict::new();
        let cx = RenderCx { saltenv: "base", sls: "a", path: None, context: &context };
        Yaml.render(Data::Text(Text::new("a.sls", text)), "", &cx).expect_err("not YAML")
    }

    fn check(text: &str, class: &str, message: &str, place: &str) {
        let error = failure(text);
        assert_eq!(error.class(), class);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.place().map(ToString::to_string).as_deref(), Some(place));
        assert!(error.hint().is_some() || class != "SaltRenderError");
    }

    #[test]
    fn errors_are_told_as_salt_tells_them() {
        let problem = "mapping values are not allowed in this context";
        check("a: b: c\n", "SaltRenderError", problem, "a.sls:1:5");
        let tab = "found character that cannot start any token";
        check("a:\n\tb: 1\n", "SaltRenderError", tab, "a.sls:2:1");
        check(
            "a: 1\na: 2\n",
            "SaltRenderError",
            "while constructing a mapping\n  in \"<unicode string>\", line 1, column 1\nfound conflicting ID 'a'\n  in \"<unicode string>\", line 2, column 1",
            "a.sls:2:1",
        );
        check(
            "a: *x\n",
            "ComposerError",
            "found undefined alias\n  in \"<unicode string>\", line 1, column 4",
            "a.sls:1:4",
        );
        let literal = "invalid literal for int() with base 10: 'x'";
        check("b: 1\na: !!int x\n", "ValueError", literal, "a.sls:2:4");
        assert_eq!(failure("b: 1\na: !!int x\n").accident(), Some("ValueError"));
    }

    #[test]
    fn hints_help() {
        assert!(failure("a:\n\tb: 1\n").hint().is_some_and(|hint| hint.contains("tab")));
        assert!(failure("x: {{ foo }}\n").hint().is_some_and(|hint| hint.contains("{{")));
        assert!(failure("- name: a: b\n").hint().is_some_and(|hint| hint.contains("quotes")));
        assert_eq!(failure("a: &web 1\nb: *wbe\n").hint(), Some("did you mean `*web`?"));
    }
}
