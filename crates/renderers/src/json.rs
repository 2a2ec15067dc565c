//! The renderer `json`: text to data. A first line `#!json` is taken away, since JSON has no comments.

use halite_value::{Value, json};

use crate::pipeline::{Data, Error, RenderCx, Renderer, need_text};

/// The renderer `json`.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Renderer for Json {
    fn name(&self) -> &str {
        "json"
    }

    fn render(&self, input: Data, _args: &str, _cx: &RenderCx<'_>) -> Result<Data, Error> {
        let text = need_text(input, self.name())?;
        let (body, skipped) = match text.as_str().strip_prefix("#!") {
            // Without any line break, Salt's way of cutting leaves the line as it is.
            Some(rest) if !rest.contains('\n') => (text.as_str(), 0),
            Some(rest) => (rest.split_once('\n').map_or("", |(_, body)| body), 1),
            None => (text.as_str(), 0),
        };
        if body.trim().is_empty() {
            return Ok(Data::Value(Value::dict()));
        }
        json::from_str(body).map(Data::Value).map_err(|error| {
            let message = error.to_string();
            let place = position(&message).map(|(line, column)| text.place(line + skipped, column));
            let error = Error::of_class("JSONDecodeError", message);
            match place {
                Some(place) => error.at(place, &text),
                None => error,
            }
        })
    }
}

/// Finds the position in Python's message: `…: line 1 column 2 (char 1)`.
fn position(message: &str) -> Option<(u32, u32)> {
    let (_, rest) = message.rsplit_once("line ")?;
    let (line, rest) = rest.split_once(" column ")?;
    let (column, _) = rest.split_once(' ')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use halite_value::Dict;

    use super::*;
    use crate::pipeline::Text;

    fn render(text: &str) -> Result<Data, Error> {
        let context = Dict::new();
        let cx = RenderCx { saltenv: "base", sls: "a", path: None, context: &context };
        Json.render(Data::Text(Text::new("a.sls", text)), "", &cx)
    }

    #[test]
    fn the_first_line_is_no_json() {
        let value = render("#!json\n{\"a\": 1}\n").expect("JSON").into_value();
        assert_eq!(value.repr(), "{'a': 1}");
        assert_eq!(render("#!json\n \n").expect("nothing").into_value().repr(), "{}");
        assert_eq!(render("[1]").expect("JSON").into_value().repr(), "[1]");
    }

    #[test]
    fn errors_are_pythons_at_the_authors_line() {
        let error = render("#!json\n{a}\n").expect_err("no JSON");
        let expected =
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)";
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.place().map(ToString::to_string).as_deref(), Some("a.sls:2:2"));
        assert_eq!(error.source_line(), Some("{a}"));
    }
}
