//! `file.find`: an approximation of find(1), with Salt's options.

use std::{path::Path, time::UNIX_EPOCH};

use halite_spec::{Command, Cx, Rest, Result, Stat, function, host::Kind};
use halite_value::{Dict, Value, less, sorted};

use super::{
    edit::shell_words,
    paths::{expand_user, glob, split},
    perms::{group_name, user_name},
    regex::{IGNORECASE, Re},
    tree::walk,
};
use crate::hashutil::Kind as Hash;

/// One condition on a file.
enum Test {
    Name(Re),
    Kinds(Vec<Kind>),
    Users(Vec<u32>),
    Groups(Vec<u32>),
    Size(u64, u64),
    /// Changed at or after (true), or at or before (false), a time.
    Changed(bool, f64),
    Grep(Re),
}

enum Action {
    Print(Vec<String>),
    Delete,
    Exec(String),
}

struct Finder {
    tests: Vec<Test>,
    actions: Vec<Action>,
    min_depth: usize,
    max_depth: Option<usize>,
    test: bool,
}

fn kinds(letters: &str) -> std::result::Result<Vec<Kind>, String> {
    let letters = letters.chars().filter(|c| *c != ',' && !c.is_whitespace());
    letters
        .map(|letter| {
            Ok(match letter {
                'b' => Kind::Block,
                'c' => Kind::Char,
                'd' => Kind::Dir,
                'f' => Kind::File,
                'l' => Kind::Link,
                'p' => Kind::Fifo,
                's' => Kind::Socket,
                _ => return Err(format!("invalid file type \"{letter}\"")),
            })
        })
        .collect()
}

/// `[+-]number[unit]` as the smallest and the largest size meant.
fn size(text: &str) -> std::result::Result<(u64, u64), String> {
    let given = text.trim();
    let (style, rest) = match given.strip_prefix(['-', '+']) {
        Some(rest) => (given.chars().next().unwrap_or('='), rest),
        None => ('=', given),
    };
    let unit = match rest.chars().next_back().map(|c| c.to_ascii_lowercase()) {
        Some('b') => 1_u64,
        Some('k') => 1 << 10,
        Some('m') => 1 << 20,
        Some('g') => 1 << 30,
        Some('t') => 1 << 40,
        _ => 0,
    };
    let number = if unit == 0 { rest } else { rest[..rest.len() - 1].trim() };
    let unit = unit.max(1);
    let number = number
        .parse::<u64>()
        .map(|number| number.saturating_mul(unit))
        .or_else(|_| number.parse::<f64>().map(|number| (number * unit as f64) as u64))
        .map_err(|_| format!("invalid size: \"{text}\""))?;
    Ok(match style {
        '-' => (0, number),
        '+' => (number, u64::MAX),
        _ => (number, number + unit - 1),
    })
}

/// `[+-]1w 2d 3h 4m 5s` as seconds, cut to the finest unit given.
fn interval(text: &str) -> std::result::Result<(bool, f64), String> {
    let bad = || format!("invalid time interval: '{text}'");
    let given = text.trim();
    let (newer, rest) = match given.strip_prefix(['-', '+']) {
        Some(rest) => (given.starts_with('-'), rest),
        None => (false, given),
    };
    let compact: String = rest.chars().filter(|c| !c.is_whitespace()).collect();
    let mut seconds = 0.0;
    let mut finest = f64::INFINITY;
    let mut number = String::new();
    let mut last = f64::INFINITY;
    for c in compact.chars() {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            'w' => 604_800.0,
            'd' => 86_400.0,
            'h' => 3_600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => return Err(bad()),
        };
        if unit >= last {
            return Err(bad());
        }
        last = unit;
        let count: f64 = number.parse().map_err(|_| bad())?;
        number.clear();
        seconds += count * unit;
        finest = finest.min(unit);
    }
    if !number.is_empty() || !finest.is_finite() {
        return Err(bad());
    }
    Ok((newer, (seconds / finest).trunc() * finest))
}

impl Finder {
    fn new(cx: &Cx, options: &Dict) -> std::result::Result<Self, String> {
        let number = |value: Value| {
            value.to_str().parse::<usize>().map_err(|_| format!("invalid depth: {value}"))
        };
        let mut finder = Self {
            tests: Vec::new(),
            actions: Vec::new(),
            min_depth: 0,
            max_depth: None,
            test: false,
        };
        let mut greps = Vec::new();
        for (key, value) in options {
            let key = key.to_str();
            match key.as_str() {
                "mindepth" => finder.min_depth = number(value)?,
                "maxdepth" => finder.max_depth = Some(number(value)?),
                "test" => finder.test = value.truthy(),
                name if name.starts_with('_') => {}
                name if !value.truthy() => {
                    return Err(format!("missing value for \"{name}\" option"));
                }
                name => finder.option(cx, name, &value.to_str(), &mut greps)?,
            }
        }
        // Reading a file is the dearest test: it comes last.
        finder.tests.extend(greps);
        if finder.actions.is_empty() {
            finder.actions.push(Action::Print(vec!["path".to_owned()]));
        }
        Ok(finder)
    }

    fn option(
        &mut self,
        cx: &Cx,
        name: &str,
        value: &str,
        greps: &mut Vec<Test>,
    ) -> std::result::Result<(), String> {
        let bad = |_| format!("invalid regular expression: \"{value}\"");
        let words = || value.split([',', ' ']).filter(|word| !word.is_empty());
        let test = match name {
            "name" | "iname" => {
                let pattern = value.replace('.', r"\.").replace('?', ".?").replace('*', ".*");
                let flags = if name == "iname" { IGNORECASE } else { 0 };
                Test::Name(Re::new(&format!("{pattern}$"), flags).map_err(bad)?)
            }
            "regex" => Test::Name(Re::new(value, 0).map_err(bad)?),
            "iregex" => Test::Name(Re::new(value, IGNORECASE).map_err(bad)?),
            "type" => Test::Kinds(kinds(value)?),
            "owner" => {
                let id = |name: &str| match name.parse() {
                    Ok(id) => Ok(id),
                    Err(_) => match cx.host.user_named(name) {
                        Ok(Some(user)) => Ok(user.uid),
                        _ => Err(format!("no such user \"{name}\"")),
                    },
                };
                Test::Users(words().map(id).collect::<std::result::Result<_, _>>()?)
            }
            "group" => {
                let id = |name: &str| match name.parse() {
                    Ok(id) => Ok(id),
                    Err(_) => match cx.host.group_named(name) {
                        Ok(Some(group)) => Ok(group.gid),
                        _ => Err(format!("no such group \"{name}\"")),
                    },
                };
                Test::Groups(words().map(id).collect::<std::result::Result<_, _>>()?)
            }
            "size" => {
                let (least, most) = size(value)?;
                Test::Size(least, most)
            }
            "mtime" => {
                let (newer, age) = interval(value)?;
                let now = cx.host.now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
                Test::Changed(newer, now - age)
            }
            "grep" => {
                greps.push(Test::Grep(Re::bytes(value, 0).map_err(bad)?));
                return Ok(());
            }
            "print" => {
                let format: Vec<String> = words().map(str::to_owned).collect();
                let format = if format.is_empty() { vec!["path".to_owned()] } else { format };
                self.actions.push(Action::Print(format));
                return Ok(());
            }
            "delete" => {
                let letters = if value.contains('a') { "bcdpfls" } else { value };
                let kinds = kinds(letters)?;
                self.actions.push(Action::Delete);
                Test::Kinds(kinds)
            }
            "exec" => {
                self.actions.push(Action::Exec(value.to_owned()));
                return Ok(());
            }
            _ => return Err(format!("invalid option \"{name}\"")),
        };
        self.tests.push(test);
        Ok(())
    }

    fn visit(&self, cx: &Cx, path: &str, found: &mut Vec<Value>) -> Result<()> {
        let at = Path::new(path);
        let mut stat: Option<Stat> = None;
        let mut look = || -> Option<Stat> {
            if stat.is_none() {
                stat = cx.host.stat(at, true).or_else(|_| cx.host.stat(at, false)).ok();
            }
            stat.clone()
        };
        for test in &self.tests {
            let fits = match test {
                Test::Name(re) => re.starts(split(path).1).unwrap_or(false),
                Test::Kinds(kinds) => look().is_some_and(|stat| kinds.contains(&stat.kind)),
                Test::Users(ids) => look().is_some_and(|stat| ids.contains(&stat.uid)),
                Test::Groups(ids) => look().is_some_and(|stat| ids.contains(&stat.gid)),
                Test::Size(least, most) => {
                    look().is_some_and(|stat| (*least..=*most).contains(&stat.size))
                }
                Test::Changed(newer, time) => look().is_some_and(|stat| {
                    let when = stat.mtime.trunc();
                    if *newer { when >= *time } else { when <= *time }
                }),
                Test::Grep(re) => {
                    look().is_some_and(|stat| stat.kind == Kind::File)
                        && cx
                            .host
                            .read(at)
                            .is_ok_and(|content| re.found_in_bytes(&content).unwrap_or(false))
                }
            };
            if !fits {
                return Ok(());
            }
        }
        for action in &self.actions {
            match action {
                Action::Print(format) => {
                    let Some(stat) = look() else { continue };
                    found.push(printed(cx, path, &stat, format));
                }
                Action::Delete => {
                    if self.test || cx.host.remove_all(at).is_ok() {
                        found.push(path.into());
                    }
                }
                Action::Exec(command) => {
                    let line = command.replace("{}", path);
                    let words = shell_words(&line);
                    let Some((program, rest)) = words.split_first() else { continue };
                    found.push(match cx.host.run(&Command::new(program).args(rest)) {
                        Ok(output) => format!("{line}:\n{}\n", output.stdout_text()).into(),
                        Err(_) => format!("{path}: Failed").into(),
                    });
                }
            }
        }
        Ok(())
    }

    fn find(&self, cx: &Cx, top: &str, found: &mut Vec<Value>) -> Result<()> {
        if self.min_depth < 1 {
            self.visit(cx, top, found)?;
        }
        let at = Path::new(top);
        if !cx.host.is_dir(at)? || self.max_depth == Some(0) {
            return Ok(());
        }
        let reaches = |depth: usize| self.max_depth.is_none_or(|most| depth < most);
        let base = at.components().count();
        for folder in walk(cx, at, &reaches)? {
            let depth = folder.path.components().count() - base + 1;
            if depth < self.min_depth {
                continue;
            }
            for name in folder.dirs.iter().chain(&folder.files) {
                self.visit(cx, &folder.path.join(name).display().to_string(), found)?;
            }
        }
        Ok(())
    }
}

fn printed(cx: &Cx, path: &str, stat: &Stat, format: &[String]) -> Value {
    let mut parts = Vec::new();
    for word in format {
        parts.push(match word.as_str() {
            "path" => path.into(),
            "name" => split(path).1.into(),
            "size" => stat.size.into(),
            "type" => match stat.kind {
                Kind::File => "f",
                Kind::Dir => "d",
                Kind::Link => "l",
                Kind::Block => "b",
                Kind::Char => "c",
                Kind::Fifo => "p",
                Kind::Socket => "s",
            }
            .into(),
            "mode" => (stat.mode & 0o777).into(),
            "mtime" => Value::Int(stat.mtime as i64),
            "user" => user_name(cx, stat.uid),
            "group" => group_name(cx, stat.gid),
            "md5" if stat.kind == Kind::File => {
                Hash::Md5.of_file(&*cx.host, Path::new(path)).unwrap_or_default().into()
            }
            "md5" => "".into(),
            _ => continue,
        });
    }
    match parts.as_slice() {
        [one] => one.clone(),
        _ => parts.into(),
    }
}

/// Find files below a path: by `name`, `iname`, `regex`, `iregex`, `type`, `owner`, `group`,
/// `size`, `mtime`, `grep`, `mindepth`, `maxdepth`; and `print` parts of them, `delete` them or
/// `exec` a command.
///
/// ```console
/// $ salt web1 file.find /srv/app type=f size=+1m
/// ```
#[function]
pub fn find(
    cx: &Cx,
    /// Where to begin; a pattern may name several places.
    path: String,
    /// The conditions and actions.
    options: Rest,
) -> Result<Value> {
    let chosen = options.kwargs.shallow_copy();
    let words: Vec<String> = options.args.iter().map(|word| word.to_str().to_string()).collect();
    if words.iter().any(|word| word == "delete") {
        chosen.insert("delete", "f");
    } else if words.iter().any(|word| word == "print") {
        chosen.insert("print", "path");
    }
    let finder = match Finder::new(cx, &chosen) {
        Ok(finder) => finder,
        Err(problem) => return Ok(format!("error: {problem}").into()),
    };
    let mut found = Vec::new();
    for top in glob(cx, &expand_user(cx, &path))? {
        finder.find(cx, &top, &mut found)?;
    }
    Ok(sorted(found.clone(), &less).unwrap_or(found).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_intervals() {
        assert_eq!(size("+1k"), Ok((1024, u64::MAX)));
        assert_eq!(size("-2"), Ok((0, 2)));
        assert_eq!(size("1m"), Ok((1 << 20, (2 << 20) - 1)));
        assert!(size("x").is_err());
        assert_eq!(interval("3d"), Ok((false, 259_200.0)));
        assert_eq!(interval("-1h 30m"), Ok((true, 5400.0)));
        assert!(interval("3x").is_err());
        assert!(interval("1m 1h").is_err());
    }
}
