//! What Salt does around a template: options from the configuration and from a file's own header,
//! and the line break at the end, which Jinja drops and Salt puts back.

use halite_value::{Dict, Value, json};

use super::{Environment, Error, Loader, Rendered, Syntax};

/// The options of [`Environment::set_option`].
pub const OPTIONS: [&str; 12] = [
    "block_start_string",
    "block_end_string",
    "variable_start_string",
    "variable_end_string",
    "comment_start_string",
    "comment_end_string",
    "line_statement_prefix",
    "line_comment_prefix",
    "trim_blocks",
    "lstrip_blocks",
    "keep_trailing_newline",
    "newline_sequence",
];

impl Environment {
    /// Sets an option by Jinja's name for it (`trim_blocks` …), as `jinja_env` and `jinja_sls_env`
    /// of the configuration have them. Tells whether there is such an option.
    pub fn set_option(&mut self, name: &str, value: &Value) -> bool {
        set(&mut self.syntax, name, value)
    }

    /// Renders as `salt.utils.templates.render_jinja_tmpl` does.
    pub fn render_salt(
        &self,
        text: &str,
        context: &Dict,
        loader: &dyn Loader,
    ) -> Result<Rendered, Error> {
        let ends_line = text.ends_with('\n');
        let mut rendered = match header(text) {
            Some((options, line, rest)) => {
                let mut own = self.clone();
                for (name, value) in &options {
                    own.set_option(&name.to_str(), &value);
                }
                let mut rendered = own.render(&rest, context, loader)?;
                rendered.lines.line_was_removed(line);
                rendered
            }
            None => self.render(text, context, loader)?,
        };
        if ends_line {
            rendered.text.push('\n');
        }
        Ok(rendered)
    }
}

fn set(syntax: &mut Syntax, name: &str, value: &Value) -> bool {
    let text = || value.as_str().map(str::to_owned);
    let put = |slot: &mut String| {
        if let Some(text) = text().filter(|text| !text.is_empty()) {
            *slot = text;
        }
    };
    match name.to_lowercase().as_str() {
        "block_start_string" => put(&mut syntax.block.0),
        "block_end_string" => put(&mut syntax.block.1),
        "variable_start_string" => put(&mut syntax.variable.0),
        "variable_end_string" => put(&mut syntax.variable.1),
        "comment_start_string" => put(&mut syntax.comment.0),
        "comment_end_string" => put(&mut syntax.comment.1),
        "line_statement_prefix" => {
            syntax.line_statement_prefix = text().filter(|text| !text.is_empty());
        }
        "line_comment_prefix" => {
            syntax.line_comment_prefix = text().filter(|text| !text.is_empty());
        }
        "trim_blocks" => syntax.trim_blocks = value.truthy(),
        "lstrip_blocks" => syntax.lstrip_blocks = value.truthy(),
        "keep_trailing_newline" => syntax.keep_trailing_newline = value.truthy(),
        "newline_sequence" => {
            if let Some(newline @ ("\n" | "\r\n" | "\r")) = value.as_str() {
                syntax.newline = newline.to_owned();
            }
        }
        _ => return false,
    }
    true
}

/// Reads a `#jinja2: {…}` header on the first line, or on the second below a `#!` line that names
/// renderers. Returns the options, the line it stood on and the text without it.
fn header(text: &str) -> Option<(Dict, u32, String)> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = lines.first()?;
    let at = usize::from(first.starts_with("#!") && !first.starts_with("#!/"));
    let payload = lines.get(at)?.strip_prefix("#jinja2:")?;
    let Value::Dict(options) = json::from_str(payload).ok()? else { return None };
    let rest: String =
        lines.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, line)| *line).collect();
    Some((options, u32::try_from(at).unwrap_or(0) + 1, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jinja::NoLoader;

    #[test]
    fn lines_below_a_header_are_still_found() {
        let text = "#jinja2: {\"trim_blocks\": true}\na\n{% if true %}\nb\n{% endif %}\n";
        let rendered =
            Environment::new().render_salt(text, &Dict::new(), &NoLoader).expect("renders");
        assert_eq!(rendered.text, "a\nb\n\n");
        assert_eq!(rendered.lines.source_of(1), Some((None, 2)));
        assert_eq!(rendered.lines.source_of(2), Some((None, 4)));
    }

    #[test]
    fn a_header_that_is_no_json_is_text() {
        assert!(header("#jinja2: nope\nx").is_none());
        assert!(header("#!/bin/sh\n#jinja2: {}\n").is_none());
        assert!(header("").is_none());
    }
}
