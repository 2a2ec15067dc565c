//! `file.copy` and `file.rename`.

use std::path::Path;

use halite_modules::{
    file::{
        content::Content,
        paths::{expand_user, expand_vars, file_name, is_abs, joined, parent},
        perms::{Enforced, Mode, Owner, Wanted},
        tree::{copy_tree, make_folders, move_any, walk},
    },
    temp,
};
use halite_spec::{
    Applied, Args, Cx, Error, Keys, Plan, Result, State,
    host::{Kind, Stat, Write},
};
use halite_value::{Dict, entries};

use super::{Found, absolute, default_owner, unknown_owners};

/// Copy a file or folder of this machine, if the copy is not there.
#[derive(Args)]
#[arg(open)]
pub struct Copied {
    /// The copy.
    name: String,
    /// What to copy.
    source: String,
    /// Replace what is there.
    #[default(false)]
    force: bool,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// Keep owner and mode of the original.
    #[default(false)]
    preserve: bool,
    /// The user that owns the copy.
    #[arg(alias = "owner")]
    user: Option<Owner>,
    /// The group that owns the copy.
    group: Option<Owner>,
    /// The mode of the copy.
    mode: Option<Mode>,
    /// The mode of folders made.
    dir_mode: Option<Mode>,
    /// If `name` is a folder, copy into it.
    #[default(false)]
    subdir: bool,
}

/// What `file.copy` does.
pub struct CopyWork {
    name: String,
    source: String,
    user: Owner,
    group: Owner,
    mode: Option<Mode>,
    comment: String,
}

impl Copied {
    fn owners(&self, cx: &Cx, source: &Stat) -> Result<(Owner, Owner)> {
        if self.preserve {
            return Ok((Owner::Id(source.uid), Owner::Id(source.gid)));
        }
        default_owner(cx, self.user.as_ref(), self.group.as_ref())
    }
}

impl State for Copied {
    type Seen = Found<CopyWork>;
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);
    const REPEATS: bool = true;

    fn refusal(&self, cx: &Cx) -> Result<Option<String>> {
        let source = expand_user(cx, &self.source);
        let stat = cx.host.stat_if_there(Path::new(&source), true)?;
        let Some(stat) = stat.filter(|_| is_abs(&expand_user(cx, &self.name))) else {
            return Ok(None);
        };
        let (user, group) = self.owners(cx, &stat)?;
        Ok(unknown_owners(cx, Some(&user), Some(&group)))
    }

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let mut name = absolute(cx, &self.name, "copy")?;
        let source = expand_user(cx, &self.source);
        let Some(stat) = cx.host.stat_if_there(Path::new(&source), true)? else {
            return Err(Error::failed(format!("Source file \"{source}\" is not present")));
        };
        let mut comment = format!("Copied \"{source}\" to \"{name}\"");
        let mode_of_source = || Some(Mode::of(stat.mode));
        let (user, group) = self.owners(cx, &stat)?;
        let mode = if self.preserve { None } else { self.mode.clone() }.or_else(mode_of_source);
        if cx.host.is_dir(Path::new(&name))? && self.subdir {
            name = joined(&name, file_name(&source));
        }
        let at = Path::new(&name);
        if cx.host.is_there(at)? {
            if !self.force {
                return Ok(Found::right(format!(
                    "The target file \"{name}\" exists and will not be overwritten"
                )));
            }
            let same = cx.host.is_file(at)?
                && cx.host.is_file(Path::new(&source))?
                && Content::File(source.clone().into()).is_in(cx, at)?;
            if same {
                comment.push_str(" - files are identical but force flag is set");
            }
        }
        let plan =
            Plan::unknown().pending(format!("File \"{source}\" is set to be copied to \"{name}\""));
        Ok(Found::todo(plan, CopyWork { name, source, user, group, mode, comment }))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(work) = seen.work else { return Ok(Applied::as_planned()) };
        let (name, source) = (work.name.as_str(), work.source.as_str());
        let (at, from) = (Path::new(name), Path::new(source));
        let folder = parent(name);
        if !cx.host.is_dir(Path::new(folder))? {
            if !self.makedirs {
                return Err(Error::failed(format!("The target directory {folder} is not present")));
            }
            let mode = self.dir_mode.clone().or_else(|| work.mode.as_ref().map(Mode::for_folders));
            make_folders(cx, folder, (Some(&work.user), Some(&work.group)), mode.as_ref())?;
        }
        let is_dir = cx.host.is_dir(from)?;
        let from = if is_dir { from.to_owned() } else { cx.host.real_path(from)? };
        // Copied beside its place and renamed when it is whole: a copy that broke off would look
        // finished to the next run.
        let beside = temp::fresh_path(cx, folder, ".", ".copy");
        let made = self.make(cx, &from, &beside, is_dir, &work).and_then(|enforced| {
            let in_the_way = cx.host.stat_if_there(at, false)?;
            if in_the_way.is_some_and(|stat| is_dir || stat.kind == Kind::Dir) {
                cx.host.remove_all(at).map_err(|_| {
                    Error::failed(format!(
                        "Failed to delete \"{name}\" in preparation for forced move"
                    ))
                })?;
            }
            cx.host.rename(&beside, at)?;
            Ok(enforced)
        });
        let enforced = match made {
            Ok(enforced) => enforced,
            Err(error) => {
                let _ = cx.host.remove_all(&beside);
                return Err(error);
            }
        };
        let changes = entries! { name => source };
        let applied = Applied::changes(changes.clone()).comment(work.comment);
        let Some(enforced) = enforced else { return Ok(applied) };
        changes.update(&enforced.changes);
        Ok(applied)
    }
}

impl Copied {
    fn make(
        &self,
        cx: &Cx,
        from: &Path,
        to: &Path,
        is_dir: bool,
        work: &CopyWork,
    ) -> Result<Option<Enforced>> {
        // The copy of a file is a new file with the time of now; a folder keeps the times.
        let copied = match cx.host.is_file(from)? {
            true => copy_content(cx, from, to),
            false => copy_tree(cx, from, to, false),
        };
        copied.map_err(|_| {
            Error::failed(format!("Failed to copy \"{}\" to \"{}\"", work.source, work.name))
        })?;
        if is_dir {
            let (uid, gid) = (work.user.known_uid(cx)?, work.group.known_gid(cx)?);
            for visited in walk(cx, to, &|_| true)? {
                for inside in visited.dirs.iter().chain(&visited.files) {
                    cx.host.set_owner(&visited.path.join(inside), Some(uid), Some(gid), false)?;
                }
            }
        }
        if self.preserve {
            return Ok(None);
        }
        let (user, group) = (Some(work.user.clone()), Some(work.group.clone()));
        let enforced = Wanted::new(user, group, work.mode.clone()).enforce(cx, to, false)?;
        if !enforced.problems.is_empty() {
            return Err(Error::failed(enforced.problems.join("; ")));
        }
        Ok(Some(enforced))
    }
}

/// Copies a file with its mode.
fn copy_content(cx: &Cx, from: &Path, to: &Path) -> Result<()> {
    let mode = cx.host.stat(from, true)?.mode;
    let how = Write { mode: Some(mode), ..Write::default() };
    cx.host.write_from(to, &mut *cx.host.open(from)?, &how)?;
    Ok(cx.host.set_mode(to, mode)?)
}

/// Rename a file or folder, if it is there.
#[derive(Args)]
#[arg(open)]
pub struct Rename {
    /// The new name.
    name: String,
    /// The old name.
    source: String,
    /// Replace what is there.
    #[default(false)]
    force: bool,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
}

impl State for Rename {
    type Seen = Found<(String, String)>;
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = absolute(cx, &self.name, "rename")?;
        let name = expand_vars(cx, &name);
        let source = expand_vars(cx, &expand_user(cx, &self.source));
        if !cx.host.is_there(Path::new(&source))? {
            return Ok(Found::right(format!(
                "Source file \"{source}\" has already been moved out of place"
            )));
        }
        if cx.host.is_there(Path::new(&name))? && !self.force {
            return Ok(Found::right(format!(
                "The target file \"{name}\" exists and will not be overwritten"
            )));
        }
        let plan = Plan::unknown()
            .pending(format!("File \"{source}\" is set to be moved to \"{name}\""))
            .done(format!("Moved \"{source}\" to \"{name}\""));
        Ok(Found::todo(plan, (name, source)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some((name, source)) = seen.work else { return Ok(Applied::as_planned()) };
        let at = Path::new(&name);
        if cx.host.is_there(at)? {
            cx.host.remove_all(at).map_err(|_| {
                Error::failed(format!("Failed to delete \"{name}\" in preparation for forced move"))
            })?;
        }
        let folder = parent(&name);
        if !cx.host.is_dir(Path::new(folder))? {
            if !self.makedirs {
                return Err(Error::failed(format!("The target directory {folder} is not present")));
            }
            make_folders(cx, folder, (None, None), None)?;
        }
        move_any(cx, &source, &name)
            .map_err(|_| Error::failed(format!("Failed to move \"{source}\" to \"{name}\"")))?;
        let changes: Dict = entries! { name.as_str() => source };
        Ok(Applied::changes(changes))
    }
}
