//! The help text, in optparse's layout.

use super::{Action, Default, Flag, MORE, Program, wrap::wrap};

const INDENT: usize = 2;
const MAX_HELP_POSITION: usize = 24;

struct Layout {
    width: usize,
    /// Column at which the explanations begin.
    position: usize,
    /// Room for them.
    room: usize,
}

impl Program {
    /// Returns the usage line, with its newline.
    #[must_use]
    pub fn usage_line(&self) -> String {
        format!("Usage: {} {}\n", self.name, self.usage)
    }

    /// Returns the help text for a terminal of some columns.
    #[must_use]
    pub fn help(&self, columns: usize, env: super::Env<'_>) -> String {
        let layout = self.layout(columns.saturating_sub(2));
        let mut text = self.usage_line();
        text.push('\n');
        if let Some(about) = self.about {
            text += &paragraph(about, 0, layout.width);
            text.push('\n');
        }
        text += "Options:\n";
        for flag in self.flags.iter().flat_map(|flags| flags.iter()) {
            text += &self.option(flag, INDENT, &layout, env);
        }
        for group in self.groups.iter().chain(&MORE) {
            text += &format!("\n{:INDENT$}{}:\n", "", group.title);
            if let Some(about) = group.about {
                text += &paragraph(about, 2 * INDENT, layout.width);
                text.push('\n');
            }
            for flag in group.flags {
                text += &self.option(flag, 2 * INDENT, &layout, env);
            }
        }
        let more = format!(
            "You can find additional help about {0} issuing \"man {0}\" or \"{0} --help\".",
            self.name
        );
        text.push('\n');
        text + &paragraph(&more, 0, layout.width)
    }

    fn layout(&self, width: usize) -> Layout {
        let limit = MAX_HELP_POSITION.min(width.saturating_sub(20).max(2 * INDENT));
        let own = self.flags.iter().flat_map(|flags| flags.iter()).map(|flag| (flag, INDENT));
        let grouped = self.groups.iter().chain(&MORE);
        let grouped = grouped.flat_map(|group| group.flags).map(|flag| (flag, 2 * INDENT));
        let longest = own.chain(grouped).map(|(flag, indent)| spellings(flag).len() + indent).max();
        let position = (longest.unwrap_or(0) + 2).min(limit);
        Layout { width, position, room: width.saturating_sub(position).max(11) }
    }

    fn option(&self, flag: &Flag, indent: usize, layout: &Layout, env: super::Env<'_>) -> String {
        let spellings = spellings(flag);
        let column = layout.position.saturating_sub(indent + 2);
        let position = layout.position;
        let (mut text, first) = if spellings.len() > column {
            (format!("{:indent$}{spellings}\n", ""), position)
        } else {
            (format!("{:indent$}{spellings:column$}  ", ""), 0)
        };
        let lines = wrap(&self.filled_in(flag, env), layout.room);
        for (number, line) in lines.iter().enumerate() {
            let indent = if number == 0 { first } else { position };
            text += &format!("{:indent$}{line}\n", "");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    fn filled_in(&self, flag: &Flag, env: super::Env<'_>) -> String {
        let default = match flag.default {
            Default::None => "none".into(),
            default => default.value(env).to_str(),
        };
        flag.help.replace("%prog", self.name).replace("%default", &default)
    }
}

fn paragraph(text: &str, indent: usize, width: usize) -> String {
    // optparse takes the indent off twice.
    let lines = wrap(text, width.saturating_sub(indent).max(11).saturating_sub(indent));
    lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

/// Returns how an option is written: `-t TIMEOUT, --timeout=TIMEOUT`.
fn spellings(flag: &Flag) -> String {
    let (long, short): (Vec<&str>, Vec<&str>) =
        flag.names.iter().partition(|name| name.starts_with("--"));
    let takes_value =
        !matches!(flag.action, Action::Version | Action::Help | Action::True | Action::False);
    let metavar = flag.metavar.map_or_else(|| flag.dest.to_uppercase(), String::from);
    let short = short
        .into_iter()
        .map(|name| if takes_value { format!("{name} {metavar}") } else { name.into() });
    let long = long
        .into_iter()
        .map(|name| if takes_value { format!("{name}={metavar}") } else { name.into() });
    short.chain(long).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::{Group, flag};
    use super::*;

    const PROGRAM: Program = Program {
        name: "prog",
        usage: "[options] <thing>",
        about: Some(
            "A program that does a well-known thing to many things at once, and then stops.",
        ),
        flags: &[&[
            flag(&["-h", "--help"], "", Action::Help, "Print this help and stop."),
            flag(
                &["-t", "--timeout"],
                "timeout",
                Action::Int,
                "Seconds to wait before asking. Default: %default.",
            )
            .dflt(Default::Int(5)),
            flag(
                &["-b", "--batch", "--batch-size"],
                "batch",
                Action::Str,
                "How many at a time, or \"--all-of-them\" with batch-safe-limit and one-more-hyphen.",
            ),
            flag(&["-x"], "x", Action::True, ""),
        ]],
        groups: &[Group {
            title: "Some Group",
            about: Some(
                "What this group is for, in a sentence that is long enough to be wrapped somewhere.",
            ),
            flags: &[
                flag(&["-S", "--short"], "short", Action::True, "Short."),
                flag(&["--out"], "output", Action::Several(2), "Thing.").meta("<A> <B>"),
            ],
        }],
    };

    // The files are what Python's optparse prints for the same program.
    #[test]
    fn as_optparse_lays_it_out() {
        for (columns, expected) in [
            (80, include_str!("../../tests/help/80.txt")),
            (50, include_str!("../../tests/help/50.txt")),
            (24, include_str!("../../tests/help/24.txt")),
        ] {
            assert_eq!(PROGRAM.help(columns, &|_| None), expected, "{columns} columns");
        }
    }
}
