//! `cmd_yaml` and `cmd_json`: what a command prints. `%s` in it stands for the minion's id.

use std::time::Duration;

use halite_spec::{Command, Error, Result};
use halite_value::{Value, json, yaml};

use super::{ExtArgs, ExtCx, ExtPillar};

/// No pillar waits longer for a command.
const TIMEOUT: Duration = Duration::from_secs(300);

pub(super) struct CmdYaml;
pub(super) struct CmdJson;

impl ExtPillar for CmdYaml {
    fn name(&self) -> &str {
        "cmd_yaml"
    }

    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        let text = line(cx, args)?;
        let output = run(cx, Command::shell("/bin/sh", &text))?;
        Ok(yaml::load_str(output.trim_end()).unwrap_or_else(|error| {
            tracing::error!(
                "YAML data from '{text}' failed to parse: {error}. Command output:\n{output}"
            );
            Value::dict()
        }))
    }
}

impl ExtPillar for CmdJson {
    fn name(&self) -> &str {
        "cmd_json"
    }

    fn pillar(&self, cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<Value> {
        let text = line(cx, args)?;
        let words = words(&text)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| Error::invalid(format!("cmd_json: cannot split `{text}` into words")))?;
        let mut words = words.into_iter();
        let command = Command::new(words.next().unwrap_or_default()).args(words);
        let output = run(cx, command)?;
        Ok(json::from_str(output.trim()).unwrap_or_else(|error| {
            tracing::error!("JSON data from {text} failed to parse: {error}");
            Value::dict()
        }))
    }
}

fn line(cx: &ExtCx<'_>, args: &ExtArgs<'_>) -> Result<String> {
    let command =
        args.get("command", 0).ok_or_else(|| Error::invalid("ext_pillar needs a command"))?;
    let command = command.to_str();
    // differs: the id becomes part of a shell's text; one that a shell would take apart is refused.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:@+=,".contains(c);
    if command.contains("%s") && !cx.minion_id.chars().all(is_plain) {
        return Err(Error::failed(format!(
            "the minion id {:?} cannot be part of a command",
            cx.minion_id
        )));
    }
    Ok(command.replace("%s", cx.minion_id))
}

fn run(cx: &ExtCx<'_>, command: Command) -> Result<String> {
    let output = cx.host.run(&command.query().timeout(TIMEOUT))?;
    if output.timed_out {
        return Err(Error::failed("the command took too long"));
    }
    Ok(output.stdout_text())
}

/// Splits as a POSIX shell splits words; `None` if a quote is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => loop {
                match chars.next()? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    c => word.get_or_insert_default().push(c),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => {
                        word.get_or_insert_default();
                        break;
                    }
                    '\\' => match chars.next()? {
                        c @ ('"' | '\\') => word.get_or_insert_default().push(c),
                        c => word.get_or_insert_default().extend(['\\', c]),
                    },
                    c => word.get_or_insert_default().push(c),
                }
            },
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let expected = ["a", "b c", "d\"e", "", "f\\g", "h'i"];
        assert_eq!(words(r#"a 'b c' d\"e '' "f\g" "h'i""#).expect("closed"), expected);
        assert_eq!(words("a 'b"), None);
    }
}
