//! `file.directory`: a folder, and if asked everything in it.

use std::path::{Path, PathBuf};

use halite_modules::{
    cp::{is_included, patterns},
    file::{
        paths::{parent, relative},
        perms::{Mode, Owner, Wanted},
        tree::{Visited, make_folders, walk},
    },
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State};
use halite_value::{Dict, Value, dict, entries};

use super::{Found, clean, given, must_be_absolute, unknown_owners};

/// Manage a folder: that it is there, its owner and mode; and if asked, what is in it.
#[derive(Args)]
#[arg(open)]
pub struct Directory {
    /// The folder.
    name: String,
    /// The user that owns it.
    #[arg(alias = "owner")]
    user: Option<Owner>,
    /// The group that owns it.
    group: Option<Owner>,
    /// What to enforce on everything in it: `user`, `group`, `mode`; with `ignore_files`,
    /// `ignore_dirs` and `silent`.
    recurse: Option<Value>,
    /// How deep.
    max_depth: Option<u64>,
    /// The mode of folders.
    #[arg(alias = "mode")]
    dir_mode: Option<Mode>,
    /// The mode of files, if not that of folders.
    file_mode: Option<Mode>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// Remove what no required state manages.
    #[default(false)]
    clean: bool,
    /// The states whose files `clean` spares.
    require: Option<Value>,
    /// Patterns of paths `clean` spares.
    exclude_pat: Option<Value>,
    /// Look at what links point to.
    #[default(false)]
    follow_symlinks: bool,
    /// Replace a file or a link that stands there.
    #[default(false)]
    force: bool,
    /// Rename what stands there to this instead.
    backupname: Option<String>,
    /// A link to a folder is fine.
    #[default(true)]
    allow_symlink: bool,
    /// Leave the folder itself alone.
    #[default(false)]
    children_only: bool,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_owner: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_perms: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_deny_perms: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    #[default(true)]
    win_inheritance: bool,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    #[default(false)]
    win_perms_reset: bool,
}

/// The words of `recurse`.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    user: bool,
    group: bool,
    mode: bool,
    ignore_files: bool,
    ignore_dirs: bool,
    silent: bool,
}

impl Below {
    fn parse(value: Option<&Value>) -> Result<Option<Self>> {
        let Some(value) = value.filter(|value| value.truthy()) else { return Ok(None) };
        let Some(words) = value.items_of_sequence() else {
            return Err(Error::failed("\"recurse\" must be formed as a list of strings"));
        };
        let mut below = Self::default();
        for word in words {
            let flag = match word.as_str().unwrap_or_default() {
                "user" => &mut below.user,
                "group" => &mut below.group,
                "mode" => &mut below.mode,
                "ignore_files" => &mut below.ignore_files,
                "ignore_dirs" => &mut below.ignore_dirs,
                "silent" => &mut below.silent,
                _ => {
                    return Err(Error::failed(
                        "Types for \"recurse\" limited to \"user\", \"group\", \"mode\", \
                         \"ignore_files\", \"ignore_dirs\", \"silent\".",
                    ));
                }
            };
            *flag = true;
        }
        if below.ignore_files && below.ignore_dirs {
            return Err(Error::failed(
                "Must not specify \"recurse\" options \"ignore_files\" and \"ignore_dirs\" at the \
                 same time.",
            ));
        }
        Ok(Some(below))
    }
}

/// What is to be done.
#[derive(Default)]
pub struct Work {
    name: String,
    /// Remove or rename what stands there.
    in_the_way: Option<InTheWay>,
    is_new: bool,
    /// Paths whose owner or mode differ, with what they shall be.
    enforce: Vec<(PathBuf, Wanted)>,
    remove: Vec<String>,
    below: Below,
    changes: Dict,
}

enum InTheWay {
    Remove(&'static str),
    /// To this name; what stands there goes first.
    Rename(String),
}

/// What a folder shall be, without what is in it; `file.recurse` makes its folders by this.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    pub(super) user: Option<Owner>,
    pub(super) group: Option<Owner>,
    pub(super) mode: Option<Mode>,
}

impl Plain {
    /// What is to be changed, as `{path: {…}}`.
    pub(super) fn look(&self, cx: &Cx, path: &str) -> Result<Dict> {
        let wanted = Wanted::new(self.user.clone(), self.group.clone(), self.mode.clone());
        let at = Path::new(path);
        let changes = Dict::new();
        if !cx.host.is_dir(at)? {
            changes.insert(path, dict! { "directory" => "new" });
        } else if let Some(stat) = cx.host.stat_if_there(at, false)? {
            let differing = wanted.differences(cx, at, &stat);
            if !differing.is_empty() {
                changes.insert(path, differing);
            }
        }
        Ok(changes)
    }

    /// Changes it; returns the changes and what went wrong.
    pub(super) fn make(&self, cx: &Cx, path: &str, changes: &Dict) -> Result<Vec<String>> {
        let at = Path::new(path);
        if !cx.host.is_dir(at)? {
            let owner = (self.user.as_ref(), self.group.as_ref());
            make_folders(cx, path, owner, self.mode.as_ref())?;
            return Ok(Vec::new());
        }
        let wanted = Wanted::new(self.user.clone(), self.group.clone(), self.mode.clone());
        let enforced = wanted.enforce(cx, at, false)?;
        changes.update(&enforced.changes);
        Ok(enforced.problems)
    }
}

impl Directory {
    fn modes(&self) -> (Option<Mode>, Option<Mode>) {
        let file = self.file_mode.clone().or_else(|| self.dir_mode.clone());
        (self.dir_mode.clone(), file)
    }

    fn wanted(&self, mode: Option<Mode>) -> Wanted {
        Wanted::new(self.user.clone(), self.group.clone(), mode)
    }

    /// What stands where the folder shall be.
    fn in_the_way(&self, cx: &Cx, name: &str, changes: &Dict) -> Result<Option<InTheWay>> {
        let at = Path::new(name);
        let is_link = cx.host.is_link(at)?;
        let is_file = cx.host.is_file(at)?;
        if !(is_file || (is_link && (!self.allow_symlink || self.force))) {
            return Ok(None);
        }
        if let Some(backup) = &self.backupname {
            if cx.host.is_there(Path::new(backup))? {
                if !self.force {
                    return Err(Error::failed(format!(
                        "File exists where the backup target {backup} should go"
                    )));
                }
                let text = format!("Existing file at backup path {backup} would be removed");
                changes.insert("forced", text);
            }
            changes.insert("backup", format!("{name} would be renamed to {backup}"));
            return Ok(Some(InTheWay::Rename(backup.clone())));
        }
        if self.force {
            let what = if is_file { "File" } else { "Symlink" };
            changes.insert("forced", format!("{what} would be forcibly replaced"));
            return Ok(Some(InTheWay::Remove(what)));
        }
        let what = if is_file { "file" } else { "symlink" };
        Err(Error::failed(format!("Specified location {name} exists and is a {what}")))
    }

    /// Compares one path, and notes what differs.
    fn compare(
        &self,
        cx: &Cx,
        path: PathBuf,
        wanted: Wanted,
        work: &mut Work,
        changes: &Dict,
    ) -> Result<()> {
        let stat = match cx.host.stat_if_there(&path, self.follow_symlinks)? {
            Some(stat) => stat,
            None => match cx.host.stat_if_there(&path, false)? {
                Some(stat) => stat,
                None => return Ok(()),
            },
        };
        let differing = wanted.differences(cx, &path, &stat);
        if !differing.is_empty() {
            changes.insert(path.display().to_string(), differing);
            work.enforce.push((path, wanted));
        }
        Ok(())
    }

    fn compare_below(
        &self,
        cx: &Cx,
        visited: &[Visited],
        below: Below,
        work: &mut Work,
        changes: &Dict,
    ) -> Result<()> {
        let (dir_mode, file_mode) = self.modes();
        let limited = |mode: Option<Mode>| Wanted {
            user: self.user.clone().filter(|_| below.user),
            group: self.group.clone().filter(|_| below.group),
            mode: mode.filter(|_| below.mode),
            ..Wanted::default()
        };
        let (for_dirs, for_files) = (limited(dir_mode), limited(file_mode));
        for folder in visited {
            if !below.ignore_files {
                for name in &folder.files {
                    self.compare(cx, folder.path.join(name), for_files.clone(), work, changes)?;
                }
            }
            if !below.ignore_dirs {
                for name in &folder.dirs {
                    self.compare(cx, folder.path.join(name), for_dirs.clone(), work, changes)?;
                }
            }
        }
        Ok(())
    }

    fn compare_clean(
        &self,
        cx: &Cx,
        name: &str,
        visited: &[Visited],
        work: &mut Work,
        changes: &Dict,
    ) -> Result<()> {
        let require = self.require.clone().unwrap_or_default();
        let keep = clean::required(cx, name, &require)?;
        let exclude = patterns(self.exclude_pat.as_ref());
        work.remove = clean::unkept(cx, name, keep.clone(), &exclude)?;
        for folder in visited {
            for inside in folder.files.iter().chain(&folder.dirs) {
                let path = folder.path.join(inside).display().to_string();
                if keep.iter().any(|kept| kept.contains(&path))
                    || !is_included(&relative(&path, name), &[], &exclude)?
                {
                    continue;
                }
                changes.insert(path, dict! { "removed" => "Removed due to clean" });
            }
        }
        Ok(())
    }
}

impl State for Directory {
    type Seen = Found<Work>;

    fn refusal(&self, cx: &Cx) -> Result<Option<String>> {
        Ok(unknown_owners(cx, self.user.as_ref(), self.group.as_ref())
            .filter(|_| !self.name.is_empty() && (self.max_depth.is_none() || !self.clean)))
    }

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let mut name = given(cx, &self.name, "directory")?;
        if self.max_depth.is_some() && self.clean {
            return Err(Error::failed("Cannot specify both max_depth and clean"));
        }
        must_be_absolute(&name)?;
        if name.ends_with('/') && name != "/" {
            name.pop();
        }
        let at = Path::new(&name).to_owned();
        let changes = Dict::new();
        let mut work = Work { name: name.clone(), ..Work::default() };
        work.in_the_way = self.in_the_way(cx, &name, &changes)?;
        if matches!(work.in_the_way, Some(InTheWay::Rename(_))) {
            changes.insert(name.as_str(), dict! { "directory" => "new" });
            let plan = Plan::changes(changes)
                .pending(format!("{name} would be backed up and replaced with a new directory"));
            work.is_new = true;
            return Ok(Found::todo(plan, work));
        }
        let below = Below::parse(self.recurse.as_ref())?;
        work.below = below.unwrap_or_default();
        let told = Dict::new();
        work.is_new = work.in_the_way.is_some() || !cx.host.is_dir(&at)?;
        if work.is_new {
            told.insert(name.as_str(), dict! { "directory" => "new" });
        } else {
            let depth = self.max_depth.and_then(|depth| usize::try_from(depth).ok());
            let visited = match depth {
                Some(0) => Vec::new(),
                _ if below.is_none() && !self.clean => Vec::new(),
                _ => walk(cx, &at, &|level| depth.is_none_or(|depth| level < depth))?,
            };
            if let Some(below) = below {
                self.compare_below(cx, &visited, below, &mut work, &told)?;
            }
            if !self.children_only {
                // differs: genuine Salt overlooks the folder's own owner and mode where `recurse`
                // does not name them.
                let wanted = self.wanted(self.modes().0);
                let below = work.enforce.len();
                self.compare(cx, at.clone(), wanted, &mut work, &told)?;
                // Salt begins with the folder itself, so that the last change below it is told.
                let own = work.enforce.len() - below;
                work.enforce.rotate_right(own);
            }
            if self.clean {
                self.compare_clean(cx, &name, &visited, &mut work, &told)?;
            }
        }
        if told.is_empty() && changes.is_empty() {
            return Ok(Found::right(format!("The directory {name} is in the correct state")));
        }
        let mut comment = "The following files will be changed:\n".to_owned();
        for (path, differing) in &told {
            for (key, value) in differing.as_dict().into_iter().flatten() {
                comment.push_str(&format!("{path}: {key} - {value}\n"));
            }
        }
        changes.update(&told);
        work.changes = changes.clone();
        Ok(Found::todo(Plan::changes(changes).pending(comment), work))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(work) = seen.work else { return Ok(Applied::as_planned()) };
        let name = work.name.as_str();
        let at = Path::new(name);
        let changes = Dict::new();
        match &work.in_the_way {
            Some(InTheWay::Rename(backup)) => {
                if cx.host.is_there(Path::new(backup))? {
                    cx.host.remove_all(Path::new(backup))?;
                }
                cx.host.rename(at, Path::new(backup))?;
            }
            Some(InTheWay::Remove(what)) => {
                cx.host.remove_all(at)?;
                changes.insert("forced", format!("{what} was forcibly replaced"));
            }
            None => {}
        }
        if work.is_new {
            return self.create(cx, name, &changes);
        }
        changes.update(&work.changes);
        if work.below.silent {
            changes.write().clear();
            changes.insert("recursion", "Changes silenced");
        }
        let mut problems = Vec::new();
        for (path, wanted) in &work.enforce {
            let enforced = match wanted.enforce(cx, path, self.follow_symlinks) {
                Ok(enforced) => enforced,
                Err(Error::Host(error)) if error.is_missing() => continue,
                Err(error) => {
                    problems.push(error.to_string());
                    continue;
                }
            };
            // Salt adds what it changed below the top, too.
            changes.update(&enforced.changes);
            problems.extend(enforced.problems);
        }
        let mut comment = self.complaint(&work, &problems);
        let result = comment.is_empty();
        if !work.remove.is_empty() {
            clean::remove(cx, &work.remove)?;
            changes.insert("removed", clean::tops(&work.remove));
            comment = format!("Files cleaned from directory {name}");
        }
        if comment.is_empty() {
            comment = if self.children_only {
                format!("Directory {name}/* updated")
            } else {
                format!("Directory {name} updated")
            };
        }
        Ok(Applied {
            changes: Some(changes),
            comment: Some(comment),
            result: Some(result),
            extra: Dict::new(),
        })
    }
}

impl Directory {
    fn create(&self, cx: &Cx, name: &str, changes: &Dict) -> Result<Applied> {
        if !cx.host.is_dir(Path::new(parent(name)))? && !self.makedirs {
            // Salt tells the planned change all the same.
            changes.insert(name, entries! { "directory" => "new" });
            let text = format!("No directory to create {name} in");
            return Ok(Applied::failed(changes.clone(), text));
        }
        let owner = (self.user.as_ref(), self.group.as_ref());
        make_folders(cx, name, owner, self.modes().0.as_ref())?;
        if !cx.host.is_dir(Path::new(name))? {
            return Ok(Applied::failed(
                changes.clone(),
                format!("Failed to create directory {name}"),
            ));
        }
        changes.insert(name, entries! { "directory" => "new" });
        Ok(Applied::changes(changes.clone()).comment(""))
    }

    /// What went wrong, in Salt's words.
    fn complaint(&self, work: &Work, problems: &[String]) -> String {
        if work.below.user && Owner::given(self.user.as_ref()).is_none() {
            return "user not specified, but configured as a target for recursive ownership \
                    management"
                .to_owned();
        }
        if work.below.group && Owner::given(self.group.as_ref()).is_none() {
            return "group not specified, but configured as a target for recursive ownership \
                    management"
                .to_owned();
        }
        problems.join("; ")
    }
}
