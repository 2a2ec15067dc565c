//! The command line, as Python's `optparse` reads it.
//!
//! Scripts rely on its habits: options and arguments in any order, unambiguous abbreviations
//! (`--stat`), clusters (`-Gv`), values glued to their letter (`-lquiet`), and its error texts.
//! One table per program ([`Program`]) drives the parser here, the help in `help.rs`, and whatever
//! else wants to know the options (completion, man pages).
//!
//! Salt's exit code for a wrong command line is 64, not optparse's 2.

mod help;
pub mod wrap;

use std::collections::HashMap;

use halite_value::{Value, str_repr, suggest};

/// The exit code of a wrong command line.
pub const EX_USAGE: u8 = 64;

/// What an option does with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Prints the version and ends.
    Version,
    /// Prints the help and ends.
    Help,
    True,
    False,
    Str,
    Int,
    Float,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// May be given several times; all values count.
    Append,
    /// Takes this many values.
    Several(u8),
    /// A file to log to; a bare name means the current folder.
    LogFile,
}

impl Action {
    fn values(self) -> usize {
        match self {
            Self::Version | Self::Help | Self::True | Self::False => 0,
            Self::Several(count) => count.into(),
            _ => 1,
        }
    }
}

/// The value of an option that was not given.
#[derive(Clone, Copy, Debug, Default)]
pub enum Default {
    #[default]
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'static str),
    EmptyList,
    EmptyDict,
    /// The value of an environment variable, or else a text.
    Env(&'static str, &'static str),
    /// True when an environment variable is set.
    EnvFlag(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Short and long spellings, as typed.
    pub names: &'static [&'static str],
    /// The name under which the value is found, and the configuration option it overrides.
    pub dest: &'static str,
    pub action: Action,
    pub default: Default,
    /// How the value is called in the help; the name in capitals if nothing is said.
    pub metavar: Option<&'static str>,
    /// What it is for; `%prog` and `%default` are filled in.
    pub help: &'static str,
}

/// Returns an option; [`Flag::dflt`] and [`Flag::meta`] add to it.
pub const fn flag(
    names: &'static [&'static str],
    dest: &'static str,
    action: Action,
    help: &'static str,
) -> Flag {
    let default = match action {
        Action::True => Default::Bool(false),
        Action::False => Default::Bool(true),
        _ => Default::None,
    };
    Flag { names, dest, action, default, metavar: None, help }
}

impl Flag {
    #[must_use]
    pub const fn dflt(mut self, default: Default) -> Self {
        self.default = default;
        self
    }

    #[must_use]
    pub const fn meta(mut self, metavar: &'static str) -> Self {
        self.metavar = Some(metavar);
        self
    }
}

/// Options under a heading.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub title: &'static str,
    pub about: Option<&'static str>,
    pub flags: &'static [Flag],
}

/// Options that only Halite has; every program has them.
static MORE: [Group; 1] = [Group {
    title: "Halite Options",
    about: None,
    flags: &[flag(
        &["--error-format"],
        "error_format",
        Action::Choice(&["text", "json"]),
        "How problems are shown: as text, or as one JSON object per line. Default: '%default'.",
    )
    .dflt(Default::Env("HALITE_ERROR_FORMAT", "text"))],
}];

/// The command line of one program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// What follows the name in the usage line.
    pub usage: &'static str,
    pub about: Option<&'static str>,
    /// Options without a heading, in pieces that programs share.
    pub flags: &'static [&'static [Flag]],
    pub groups: &'static [Group],
}

/// What was given.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    values: HashMap<&'static str, Value>,
    explicit: Vec<&'static str>,
    pub args: Vec<String>,
}

impl Parsed {
    /// Returns the value of an option, given or preset.
    #[must_use]
    pub fn get(&self, dest: &str) -> Value {
        self.values.get(dest).cloned().unwrap_or_default()
    }

    /// Returns the value as text, when there is one.
    #[must_use]
    pub fn str(&self, dest: &str) -> Option<String> {
        match self.get(dest) {
            Value::Null => None,
            value => Some(value.to_str().to_string()),
        }
    }

    #[must_use]
    pub fn bool(&self, dest: &str) -> bool {
        self.get(dest).truthy()
    }

    #[must_use]
    pub fn int(&self, dest: &str) -> Option<i64> {
        self.get(dest).as_int()
    }

    /// Tells whether the user gave the option.
    #[must_use]
    pub fn is_explicit(&self, dest: &str) -> bool {
        self.explicit.contains(&dest)
    }

    /// Returns all options with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(dest, value)| (*dest, value))
    }

    /// Replaces a value, as if the user had given it.
    pub fn set(&mut self, dest: &'static str, value: impl Into<Value>) {
        self.values.insert(dest, value.into());
        if !self.is_explicit(dest) {
            self.explicit.push(dest);
        }
    }

    /// Replaces a value without calling it given.
    pub fn adopt(&mut self, dest: &'static str, value: Value) {
        self.values.insert(dest, value);
    }
}

/// Why parsing ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Print the help and end well.
    Help,
    /// Print the version and end well.
    Version,
    /// Print the usage line and this, and end with [`EX_USAGE`].
    Error(String),
}

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Program {
    /// Returns every option, those under headings last.
    pub fn all(&self) -> impl Iterator<Item = &'static Flag> {
        let own = self.flags.iter().flat_map(|flags| flags.iter());
        own.chain(self.groups.iter().chain(&MORE).flat_map(|group| group.flags.iter()))
    }

    /// Reads a command line (without the program's name).
    pub fn parse(&self, args: &[String], env: Env<'_>) -> Result<Parsed, Stop> {
        let mut parsed = Parsed::default();
        for flag in self.all().filter(|flag| !flag.dest.is_empty()) {
            parsed.values.insert(flag.dest, flag.default.value(env));
        }
        self.parse_into(&mut parsed, args)?;
        Ok(parsed)
    }

    /// Reads further arguments, over what was read already.
    pub fn parse_into(&self, parsed: &mut Parsed, args: &[String]) -> Result<(), Stop> {
        let mut rest = Rest { args: args.iter().cloned().rev().collect() };
        while let Some(arg) = rest.args.pop() {
            if arg == "--" {
                parsed.args.extend(rest.args.into_iter().rev());
                return Ok(());
            }
            if arg.starts_with("--") {
                self.long(&arg, &mut rest, parsed)?;
            } else if arg.len() > 1 && arg.starts_with('-') {
                self.short(&arg, &mut rest, parsed)?;
            } else {
                parsed.args.push(arg);
            }
        }
        Ok(())
    }

    fn long(&self, arg: &str, rest: &mut Rest, parsed: &mut Parsed) -> Result<(), Stop> {
        let (typed, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let (name, flag) = self.abbreviated(typed)?;
        let count = flag.action.values();
        if count == 0 && value.is_some() {
            return Err(Stop::Error(format!("{name} option does not take a value")));
        }
        rest.args.extend(value.map(String::from));
        let values = rest.take(name, count)?;
        act(flag, name, values, parsed)
    }

    /// Returns the option a long spelling means: exactly, or as the only one that begins so.
    fn abbreviated(&self, typed: &str) -> Result<(&'static str, &'static Flag), Stop> {
        let mut found: Vec<(&'static str, &'static Flag)> = Vec::new();
        for flag in self.all() {
            for &name in flag.names.iter().filter(|name| name.starts_with("--")) {
                if name == typed {
                    return Ok((name, flag));
                }
                if name.starts_with(typed) {
                    found.push((name, flag));
                }
            }
        }
        match found[..] {
            [] => {
                let names = self.all().flat_map(|flag| flag.names.iter().copied());
                let long = names.filter(|name| name.starts_with("--"));
                let hint =
                    suggest::nearest(typed, long).map(|name| format!(" (did you mean {name}?)"));
                Err(Stop::Error(format!("no such option: {typed}{}", hint.unwrap_or_default())))
            }
            [only] => Ok(only),
            _ => {
                let mut names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
                names.sort_unstable();
                Err(Stop::Error(format!("ambiguous option: {typed} ({}?)", names.join(", "))))
            }
        }
    }

    fn short(&self, arg: &str, rest: &mut Rest, parsed: &mut Parsed) -> Result<(), Stop> {
        for (at, letter) in arg.char_indices().skip(1) {
            let typed = format!("-{letter}");
            let found = self.all().find_map(|flag| {
                flag.names.iter().find(|name| **name == typed).map(|name| (*name, flag))
            });
            let Some((name, flag)) = found else {
                return Err(Stop::Error(format!("no such option: {typed}")));
            };
            let count = flag.action.values();
            let glued = &arg[at + letter.len_utf8()..];
            if count > 0 && !glued.is_empty() {
                rest.args.push(glued.into());
            }
            let values = rest.take(name, count)?;
            act(flag, name, values, parsed)?;
            if count > 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Arguments still to be read, the next one last.
struct Rest {
    args: Vec<String>,
}

impl Rest {
    fn take(&mut self, name: &str, count: usize) -> Result<Vec<String>, Stop> {
        if self.args.len() < count {
            let word = if count == 1 { "argument" } else { "arguments" };
            return Err(Stop::Error(format!("{name} option requires {count} {word}")));
        }
        let at = self.args.len() - count;
        Ok(self.args.drain(at..).rev().collect())
    }
}

fn act(
    flag: &'static Flag,
    name: &str,
    values: Vec<String>,
    parsed: &mut Parsed,
) -> Result<(), Stop> {
    let first = || values.first().cloned().unwrap_or_default();
    let value = match flag.action {
        Action::Version => return Err(Stop::Version),
        Action::Help => return Err(Stop::Help),
        Action::True => Value::from(true),
        Action::False => Value::from(false),
        Action::Str => Value::from(first()),
        Action::Int => integer(&first()).ok_or_else(|| invalid(name, "integer", &first()))?,
        Action::Float => {
            float(&first()).ok_or_else(|| invalid(name, "floating-point", &first()))?
        }
        Action::Choice(words) => {
            let word = first();
            if !words.contains(&word.as_str()) {
                // Of a word in capitals the list of choices says enough.
                let near = suggest::nearest(&word, words.iter().copied())
                    .filter(|near| !near.eq_ignore_ascii_case(&word));
                let near = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
                let words: Vec<_> = words.iter().map(|word| str_repr(word)).collect();
                return Err(Stop::Error(format!(
                    "option {name}: invalid choice: {} (choose from {}){near}",
                    str_repr(&word),
                    words.join(", ")
                )));
            }
            Value::from(word)
        }
        Action::Append => {
            let list = parsed.get(flag.dest).items_of_sequence().unwrap_or_default();
            Value::list(list.into_iter().chain([Value::from(first())]))
        }
        Action::Several(_) => Value::list(values),
        Action::LogFile => {
            let file = first();
            Value::from(if file.contains('/') { file } else { format!("./{file}") })
        }
    };
    parsed.set(flag.dest, value);
    Ok(())
}

fn invalid(name: &str, kind: &str, text: &str) -> Stop {
    Stop::Error(format!("option {name}: invalid {kind} value: {}", str_repr(text)))
}

/// Reads a whole number as Python does: with a base prefix, underscores and blanks around it.
fn integer(text: &str) -> Option<Value> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_lowercase();
    let (base, digits) = if let Some(hex) = lower.strip_prefix("0x") {
        (16, hex)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (2, binary)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, lower.strip_prefix("0o").unwrap_or(&lower[1..]))
    } else {
        (10, lower.as_str())
    };
    if digits.is_empty() || digits.ends_with('_') || digits.starts_with(['_', '+', '-']) {
        return None;
    }
    let number = i64::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(Value::from(sign * number))
}

fn float(text: &str) -> Option<Value> {
    text.trim().parse::<f64>().ok().map(Value::from)
}

impl Default {
    fn value(self, env: Env<'_>) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Bool(flag) => flag.into(),
            Self::Int(int) => int.into(),
            Self::Float(float) => float.into(),
            Self::Str(text) => text.into(),
            Self::EmptyList => Value::list::<Value>([]),
            Self::EmptyDict => Value::dict(),
            Self::Env(name, text) => {
                env(name).filter(|value| !value.is_empty()).unwrap_or_else(|| text.into()).into()
            }
            Self::EnvFlag(name) => env(name).map_or(Value::from(false), Value::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program {
        name: "prog",
        usage: "[options] <thing>",
        about: None,
        flags: &[&[
            flag(&["-h", "--help"], "", Action::Help, "help"),
            flag(&["-t", "--timeout"], "timeout", Action::Int, "wait").dflt(Default::Int(5)),
            flag(&["-s", "--static"], "static", Action::True, "group"),
            flag(&["--state-output", "--state_output"], "state_output", Action::Str, "how"),
            flag(&["-m", "--module-dirs"], "module_dirs", Action::Append, "dirs"),
            flag(&["-G", "--grain"], "grain", Action::True, "by grain"),
            flag(&["-l", "--log-level"], "log_level", Action::Choice(&["all", "quiet"]), "level"),
            flag(&["-f", "--function"], "function", Action::Several(2), "call"),
            flag(&["--log-file"], "log_file", Action::LogFile, "file"),
            flag(&["--hide-timeout"], "show_timeout", Action::False, "hide"),
        ]],
        groups: &[],
    };

    fn parse(line: &str) -> Result<Parsed, Stop> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        PROGRAM.parse(&args, &|_| None)
    }

    fn check(line: &str, dest: &str, expected: impl Into<Value>, args: &[&str]) {
        let parsed = parse(line).expect(line);
        assert_eq!(parsed.get(dest), expected.into(), "{line}");
        assert_eq!(parsed.args, args, "{line}");
    }

    fn fails(line: &str, message: &str) {
        assert_eq!(parse(line).unwrap_err(), Stop::Error(message.into()), "{line}");
    }

    #[test]
    fn spellings() {
        check("a -t 3 b", "timeout", 3, &["a", "b"]);
        check("a -t3 b", "timeout", 3, &["a", "b"]);
        check("--timeout=3", "timeout", 3, &[]);
        check("--timeout 3", "timeout", 3, &[]);
        check("--ti 3", "timeout", 3, &[]);
        check("-Gt 7 x", "timeout", 7, &["x"]);
        check("-Glquiet x", "log_level", "quiet", &["x"]);
        check("-f a b c", "function", halite_value::list!["a", "b"], &["c"]);
        check("-m a -m b", "module_dirs", halite_value::list!["a", "b"], &[]);
        check("--log-file x", "log_file", "./x", &[]);
        check("--log-file /x", "log_file", "/x", &[]);
        check("--hide-timeout", "show_timeout", false, &[]);
        check("-- -t 3", "timeout", 5, &["-t", "3"]);
        check("- x", "timeout", 5, &["-", "x"]);
        check("-t 0x10", "timeout", 16, &[]);
        check("-t 1_000", "timeout", 1000, &[]);
        check("-t -1", "timeout", -1, &[]);
    }

    #[test]
    fn errors() {
        fails("--nope", "no such option: --nope");
        fails("-Q", "no such option: -Q");
        fails("--sttaic", "no such option: --sttaic (did you mean --static?)");
        fails("--st", "ambiguous option: --st (--state-output, --state_output, --static?)");
        fails("--static=1", "--static option does not take a value");
        fails("-t", "-t option requires 1 argument");
        fails("-f a", "-f option requires 2 arguments");
        fails("--timeout=", "option --timeout: invalid integer value: ''");
        fails("-t x", "option -t: invalid integer value: 'x'");
        fails("-l x", "option -l: invalid choice: 'x' (choose from 'all', 'quiet')");
    }

    #[test]
    fn early_ends() {
        assert_eq!(parse("-h --nope").unwrap_err(), Stop::Help);
        assert!(matches!(parse("--nope -h").unwrap_err(), Stop::Error(_)));
    }

    #[test]
    fn given_or_not() {
        let parsed = parse("-s").expect("fine");
        assert!(parsed.is_explicit("static") && !parsed.is_explicit("timeout"));
    }
}
