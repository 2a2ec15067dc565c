//! `file.absent`, `file.exists`, `file.missing`, `file.pruned` and `file.tidied`.

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use halite_modules::file::{
    self,
    paths::{expand_user, is_abs},
    regex::Re,
    tree::walk,
};
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, Strings, host::Kind};
use halite_value::{Dict, Value, entries};
use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{Found, absolute, given};

/// Remove a file, a link or a whole folder, if it is there.
#[derive(Args)]
#[arg(open)]
pub struct Absent {
    /// The path to remove. A folder goes with everything in it.
    name: String,
}

impl State for Absent {
    type Seen = Found<(String, &'static str)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = absolute(cx, &self.name, "absent")?;
        if name == "/" {
            return Err(Error::failed("Refusing to make \"/\" absent"));
        }
        let Some(stat) = cx.host.stat_if_there(Path::new(&name), false)? else {
            return Ok(Found::right(format!("File {name} is not present")));
        };
        let (title, noun) =
            if stat.kind == Kind::Dir { ("Directory", "directory") } else { ("File", "file") };
        let plan = Plan::change("removed", name.as_str())
            .pending(format!("{title} {name} is set for removal"))
            .done(format!("Removed {noun} {name}"));
        Ok(Found::todo(plan, (name, noun)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        if let Some((name, noun)) = seen.work {
            cx.host.remove_all(Path::new(&name)).map_err(|error| match noun {
                "directory" => Error::failed(format!("Failed to remove directory {name}")),
                _ => Error::failed(format!("Could not remove '{name}': {error}")),
            })?;
        }
        Ok(Applied::as_planned())
    }
}

/// Check that a path exists.
#[derive(Args)]
#[arg(open)]
pub struct Exists {
    /// The path.
    name: String,
}

impl State for Exists {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        let name = given(cx, &self.name, "exists")?;
        if !cx.host.exists(Path::new(&name))? {
            return Err(Error::failed(format!("Specified path {name} does not exist")));
        }
        Ok(name)
    }

    fn plan(&self, name: &String) -> Result<Plan> {
        Ok(Plan::nothing(format!("Path {name} exists")))
    }

    fn apply(&self, _: &Cx, _: String) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}

/// Check that a path does not exist.
#[derive(Args)]
#[arg(open)]
pub struct Missing {
    /// The path.
    name: String,
}

impl State for Missing {
    type Seen = String;

    fn observe(&self, cx: &Cx) -> Result<String> {
        let name = given(cx, &self.name, "missing")?;
        if cx.host.exists(Path::new(&name))? {
            return Err(Error::failed(format!("Specified path {name} exists")));
        }
        Ok(name)
    }

    fn plan(&self, name: &String) -> Result<Plan> {
        Ok(Plan::nothing(format!("Path {name} is missing")))
    }

    fn apply(&self, _: &Cx, _: String) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}

/// Remove an empty folder; or empty folders below it, too.
#[derive(Args)]
pub struct Pruned {
    /// The folder.
    name: String,
    /// Remove empty folders below it first.
    #[default(false)]
    recurse: bool,
    /// Fine if some are not empty; implies `recurse`.
    #[default(false)]
    ignore_errors: bool,
    /// Only folders last changed more than this many days ago.
    older_than: Option<Value>,
}

impl State for Pruned {
    type Seen = Found<String>;
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = expand_user(cx, &self.name);
        if !cx.host.is_dir(Path::new(&name))? {
            return Ok(Found::right(format!("Directory {name} is not present")));
        }
        let plan = Plan::change("deleted", name.as_str())
            .pending(format!("Directory {name} is set for removal"));
        Ok(Found::todo(plan, name))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(name) = seen.work else { return Ok(Applied::as_planned()) };
        let recurse = self.recurse || self.ignore_errors;
        let older = self.older_than.clone();
        let ret = file::tree::rmdir(cx, name.clone(), recurse, true, older)?;
        let Value::Dict(ret) = ret else { return Ok(Applied::as_planned()) };
        let ok = ret.remove("result").is_some_and(|result| result.truthy());
        let mut deleted: Vec<String> = ret
            .get("deleted")
            .and_then(|list| list.items_of_sequence())
            .unwrap_or_default()
            .iter()
            .map(Value::to_string)
            .collect();
        deleted.sort();
        if ok && !recurse {
            return Ok(Applied::changes(entries! { "deleted" => &name })
                .comment(format!("Removed directory {name}")));
        }
        if (ok || self.ignore_errors) && !deleted.is_empty() {
            return Ok(Applied::changes(entries! { "deleted" => deleted })
                .comment(format!("Recursively removed empty directories under {name}")));
        }
        if ok {
            return Ok(Applied::changes(Dict::new()).comment(""));
        }
        Ok(Applied::failed(ret, format!("Failed to remove directory {name}")))
    }
}

/// Remove old or large files below a folder.
#[derive(Args)]
#[arg(open)]
pub struct Tidied {
    /// The folder.
    name: String,
    /// At least this many days old.
    #[default(0)]
    age: i64,
    /// Regular expressions for names; any, if none is given.
    matches: Option<Strings>,
    /// Remove folders too.
    #[default(false)]
    rmdirs: bool,
    /// At least this large: bytes, or a number with a unit.
    #[default(Value::Int(0))]
    size: Value,
    /// Regular expressions for names to spare.
    exclude: Option<Strings>,
    /// Compare expressions with whole paths.
    #[default(false)]
    full_path_match: bool,
    /// Taken for compatibility.
    #[expect(dead_code, reason = "differs: links to folders are never followed when removing")]
    #[default(false)]
    followlinks: bool,
    /// Which time counts: `atime`, `mtime` or `ctime`.
    #[default("atime".to_owned())]
    time_comparison: String,
    /// `AND` or `OR` of age and size.
    #[default("OR".to_owned())]
    age_size_logical_operator: String,
    /// Only `age` or only `size` counts.
    age_size_only: Option<String>,
    /// Remove links too.
    #[default(true)]
    rmlinks: bool,
}

/// `10 MB` is 10,000,000, `10 MiB` and `10m` are 1024² each; nonsense is 0.
fn bytes_of(value: &Value) -> u64 {
    if let Some(number) = value.as_int() {
        return u64::try_from(number).unwrap_or(0);
    }
    let text = value.to_str();
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_lowercase();
    let unit = if unit.is_empty() { "b" } else { &unit };
    let Some(power) = unit.chars().next().and_then(|letter| "bkmgtpezy".find(letter)) else {
        return 0;
    };
    let base: f64 = match &unit[1..] {
        "b" if power > 0 => 1000.0,
        "" | "ib" => 1024.0,
        _ => return 0,
    };
    number.parse::<f64>().map_or(0, |number| (number * base.powi(power as i32)) as u64)
}

fn day_of(time: f64) -> Option<Date> {
    let whole = SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(time).ok()?;
    Some(Timestamp::try_from(whole).ok()?.to_zoned(TimeZone::system()).date())
}

impl Tidied {
    fn expressions(list: Option<&Strings>) -> Result<Vec<Re>> {
        let compile = |text: &String| {
            Re::new(text, 0).map_err(|error| Error::failed(format!("{error}: {text}")))
        };
        list.map_or(&[][..], |list| list.as_slice()).iter().map(compile).collect()
    }

    fn old_ones(&self, cx: &Cx, name: &str) -> Result<Vec<String>> {
        let matches = Self::expressions(self.matches.as_ref())?;
        let exclude = Self::expressions(self.exclude.as_ref())?;
        let fits = |text: &str| {
            let any = |list: &[Re]| list.iter().any(|re| re.starts(text).unwrap_or(false));
            (self.matches.is_none() || any(&matches)) && !any(&exclude)
        };
        let now = cx.host.now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let today = day_of(now);
        let limit = bytes_of(&self.size);
        let mut found = Vec::new();
        let mut visited = walk(cx, Path::new(name), &|_| true)?;
        visited.reverse();
        for folder in visited {
            for elem in folder.files.iter().chain(&folder.dirs) {
                let path = folder.path.join(elem);
                let Some(own) = cx.host.stat_if_there(&path, false)? else { continue };
                let (stat, removable, size) = match own.kind {
                    Kind::Link => (own, self.rmlinks, 0),
                    Kind::Dir => (own, self.rmdirs, 0),
                    _ => {
                        let size = own.size;
                        (own, true, size)
                    }
                };
                let time = match self.time_comparison.to_lowercase().as_str() {
                    "ctime" => stat.ctime,
                    "mtime" => stat.mtime,
                    _ => stat.atime,
                };
                let days = match (today, day_of(time)) {
                    (Some(today), Some(day)) => i64::from((today - day).get_days()).abs(),
                    _ => 0,
                };
                let (old, large) = (days >= self.age, size >= limit);
                let only = self.age_size_only.as_deref().unwrap_or_default().to_lowercase();
                let both = self.age_size_logical_operator.eq_ignore_ascii_case("and");
                let counts = match only.as_str() {
                    "age" => old,
                    "size" => large,
                    _ if both => old && large,
                    _ => old || large,
                };
                let shown = path.display().to_string();
                let compared = if self.full_path_match { shown.as_str() } else { elem.as_str() };
                if counts && removable && fits(compared) {
                    found.push(shown);
                }
            }
        }
        Ok(found)
    }
}

impl State for Tidied {
    type Seen = Found<(String, Vec<String>)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = expand_user(cx, &self.name);
        if !is_abs(&name) {
            return Err(Error::failed(format!("Specified file {name} is not an absolute path")));
        }
        if !cx.host.is_dir(Path::new(&name))? {
            return Err(Error::failed(format!("{name} does not exist or is not a directory.")));
        }
        let found = self.old_ones(cx, &name)?;
        if found.is_empty() {
            return Ok(Found::right(format!("Nothing to remove from directory {name}")));
        }
        let plan = Plan::change("removed", found.clone())
            .pending(format!("{name} is set for tidy"))
            .done(format!("Removed {} files or directories from directory {name}", found.len()));
        Ok(Found::todo(plan, (name, found)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some((_, paths)) = seen.work else { return Ok(Applied::as_planned()) };
        let mut removed = Vec::new();
        for path in paths {
            if let Err(error) = cx.host.remove_all(Path::new(&path))
                && !error.is_missing()
            {
                let comment = format!("Could not remove '{path}': {error}");
                return Ok(Applied::failed(entries! { "removed" => removed }, comment));
            }
            removed.push(path);
        }
        Ok(Applied::as_planned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units() {
        for (text, expected) in
            [("10", 10), ("1k", 1024), ("1kb", 1000), ("1.5 MiB", 1_572_864), ("x", 0), ("1kx", 0)]
        {
            assert_eq!(bytes_of(&Value::str(text)), expected, "{text}");
        }
    }
}
