//! `file.symlink` and `file.hardlink`.

use std::path::Path;

use halite_modules::file::{
    self,
    paths::{file_name, is_abs, joined, normalized, parent},
    perms::{Mode, Owner, group_name, user_name},
    tree::make_folders,
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, Stat, State, host::Kind};
use halite_value::{Dict, Value, entries};

use super::{Found, default_owner, given};

/// Manage a symbolic link.
#[derive(Args)]
#[arg(open)]
pub struct Symlink {
    /// The link.
    name: String,
    /// What it points to.
    target: String,
    /// Replace what stands there.
    #[default(false)]
    force: bool,
    /// Rename what stands there to this.
    backupname: Option<String>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// The user that owns the link.
    #[arg(alias = "owner")]
    user: Option<Owner>,
    /// The group that owns the link.
    group: Option<Owner>,
    /// The mode of folders made.
    mode: Option<Mode>,
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
    win_inheritance: Option<Value>,
    /// Replace in one step.
    #[default(false)]
    atomic: bool,
    /// Fail rather than copy when `backupname` is on another file system.
    #[default(false)]
    disallow_copy_and_unlink: bool,
    /// Keep the owner of a link that is there.
    #[default(false)]
    inherit_user_and_group: bool,
    /// A link whose target is missing does not count as there.
    #[default(true)]
    follow_symlinks: bool,
}

/// A symbolic link as wanted.
pub struct Link {
    pub(super) name: String,
    pub(super) target: String,
    pub(super) force: bool,
    pub(super) backupname: Option<String>,
    pub(super) makedirs: bool,
    pub(super) user: Owner,
    pub(super) group: Owner,
    pub(super) mode: Option<Mode>,
    pub(super) atomic: bool,
    pub(super) stay_on_device: bool,
    pub(super) follow: bool,
}

fn owners(cx: &Cx, stat: &Stat) -> String {
    format!("{}:{}", user_name(cx, stat.uid), group_name(cx, stat.gid))
}

impl Link {
    fn is_owned(&self, cx: &Cx, stat: &Stat) -> bool {
        self.user.uid(cx) == Some(stat.uid) && self.group.gid(cx) == Some(stat.gid)
    }

    /// Says what a test says.
    pub(super) fn look(&self, cx: &Cx) -> Result<Plan> {
        let mut problems = Vec::new();
        if self.user.uid(cx).is_none() {
            problems.push(format!("User {} does not exist", self.user));
        }
        if self.group.gid(cx).is_none() {
            problems.push(format!("Group {} does not exist", self.group));
        }
        if !is_abs(&self.name) {
            problems.push(format!("Specified file {} is not an absolute path", self.name));
        }
        if !problems.is_empty() {
            let end = if problems.len() > 1 { "." } else { "" };
            return Err(Error::failed(format!("{}{end}", problems.join(". "))));
        }
        let (name, target) = (&self.name, &self.target);
        let mut plan = self.compared(cx)?;
        let folder = parent(name);
        if !cx.host.is_dir(Path::new(folder))? {
            plan.pending.push_str(&if self.makedirs {
                format!("\n{folder} will be created")
            } else {
                format!("\nDirectory {folder} for symlink is not present")
            });
        }
        let _ = target;
        Ok(plan)
    }

    fn compared(&self, cx: &Cx) -> Result<Plan> {
        let (name, target) = (&self.name, &self.target);
        let at = Path::new(name);
        let stat = cx.host.stat_if_there(at, false)?;
        let Some(stat) = stat else {
            return Ok(Plan::change("new", name.as_str())
                .pending(format!("Symlink {name} to {target} is set for creation")));
        };
        if stat.kind == Kind::Link {
            let now = cx.host.read_link(at)?.to_string_lossy().into_owned();
            if normalized(&now) != normalized(target) {
                return Ok(Plan::change("change", name.as_str())
                    .pending(format!("Link {name} target is set to be changed to {target}")));
            }
            let shown = format!("{}:{}", self.user, self.group);
            if self.is_owned(cx, &stat) {
                return Ok(Plan::nothing(format!("The symlink {name} is present"))
                    .done(format!("Symlink {name} is present and owned by {shown}")));
            }
            let now = owners(cx, &stat);
            return Ok(Plan::change("ownership", now.as_str()).pending(format!(
                "The symlink {name} is present, but the ownership of the symlink would be changed \
                 from {now} to {shown}"
            )));
        }
        let mut plan = Plan::unknown();
        if self.force {
            plan.pending = format!(
                "The file or directory {name} is set for removal to make way for a new symlink \
                 targeting {target}"
            );
        } else {
            plan.test_result = Some(false);
            plan.pending = format!(
                "File or directory exists where the symlink {name} should be. Did you mean to use \
                 force?"
            );
        }
        Ok(plan)
    }

    pub(super) fn make(&self, cx: &Cx) -> Result<Applied> {
        let (name, target) = (&self.name, &self.target);
        let at = Path::new(name);
        let folder = parent(name);
        if !cx.host.is_dir(Path::new(folder))? {
            if !self.makedirs {
                return Err(Error::failed(format!(
                    "Directory {folder} for symlink is not present"
                )));
            }
            let owner = (Some(&self.user), Some(&self.group));
            make_folders(cx, folder, owner, self.mode.as_ref())?;
        }
        let shown = format!("{}:{}", self.user, self.group);
        let set_owner = || cx.host.set_owner(at, self.user.uid(cx), self.group.gid(cx), false);
        match cx.host.stat_if_there(at, false)? {
            Some(stat) if stat.kind == Kind::Link => {
                let now = cx.host.read_link(at)?.to_string_lossy().into_owned();
                if normalized(&now) == normalized(target) {
                    return Ok(match set_owner() {
                        Ok(()) => Applied::changes(entries! { "ownership" => &shown })
                            .comment(format!("Set ownership of symlink {name} to {shown}")),
                        Err(_) => Applied::failed(
                            Dict::new(),
                            format!("Failed to set ownership of symlink {name} to {shown}"),
                        ),
                    });
                }
                if !self.atomic {
                    cx.host.remove_file(at)?;
                }
            }
            Some(stat) => self.clear(cx, &stat)?,
            None => {}
        }
        let made = file::tree::symlink(
            cx,
            target.clone(),
            name.clone(),
            self.force,
            self.atomic,
            self.follow,
        );
        if let Err(error) = made {
            return Ok(Applied::failed(
                Dict::new(),
                format!(
                    "Unable to create new symlink {name} -> {target}: {}",
                    error.python_words()
                ),
            ));
        }
        let changes = entries! { "new" => name };
        let comment = format!("Created new symlink {name} -> {target}");
        let stat = cx.host.stat(at, false)?;
        if !self.is_owned(cx, &stat) && set_owner().is_err() {
            let comment = format!("{comment}, but was unable to set ownership to {shown}");
            return Ok(Applied::failed(changes, comment));
        }
        Ok(Applied::changes(changes).comment(comment))
    }

    /// Makes room for the link.
    fn clear(&self, cx: &Cx, stat: &Stat) -> Result<()> {
        let (name, target) = (&self.name, &self.target);
        let Some(backup) = &self.backupname else {
            if self.force || self.atomic {
                return Ok(());
            }
            let what = match stat.kind {
                Kind::File => "File",
                Kind::Dir => "Directory",
                _ => "File system entry",
            };
            return Err(Error::failed(format!("{what} exists where the symlink {name} should be")));
        };
        let backup = if is_abs(backup) {
            backup.clone()
        } else if file_name(backup) == backup {
            joined(parent(&normalized(name)), backup)
        } else {
            return Err(Error::failed(format!(
                "Backupname must be an absolute path or a file name: {backup}"
            )));
        };
        if cx.host.is_there(Path::new(&backup))? {
            if !self.force {
                return Err(Error::failed(format!(
                    "Symlink & backup dest exists and Force not set. {name} -> {target} - backup: \
                     {backup}"
                )));
            }
            cx.host.remove_all(Path::new(&backup))?;
        }
        file::tree::move_(cx, name.clone(), backup.clone(), self.stay_on_device)
            .map(|_| ())
            .map_err(|error| {
                Error::failed(format!("Unable to rename {name} to backup {backup} -> : {error}"))
            })
    }
}

impl Symlink {
    fn link(&self, cx: &Cx) -> Result<Link> {
        let name = given(cx, &self.name, "symlink")?;
        let (mut user, mut group) = (self.user.clone(), self.group.clone());
        if self.inherit_user_and_group
            && let Some(stat) = cx.host.stat_if_there(Path::new(&name), false)?
            && stat.kind == Kind::Link
        {
            let user_now = cx.host.user_with_id(stat.uid)?.map(|user| Owner::Name(user.name));
            let group_now = cx.host.group_with_id(stat.gid)?.map(|group| Owner::Name(group.name));
            user = user.or(user_now).or(Some(Owner::Id(stat.uid)));
            group = group.or(group_now).or(Some(Owner::Id(stat.gid)));
        }
        let (user, group) = default_owner(cx, user.as_ref(), group.as_ref())?;
        Ok(Link {
            name,
            target: self.target.clone(),
            force: self.force,
            backupname: self.backupname.clone(),
            makedirs: self.makedirs,
            user,
            group,
            mode: self.mode.clone(),
            atomic: self.atomic,
            stay_on_device: self.disallow_copy_and_unlink,
            follow: self.follow_symlinks,
        })
    }
}

impl State for Symlink {
    type Seen = (Link, Plan);

    fn observe(&self, cx: &Cx) -> Result<(Link, Plan)> {
        let link = self.link(cx)?;
        let plan = link.look(cx)?;
        Ok((link, plan))
    }

    fn plan(&self, (_, plan): &(Link, Plan)) -> Result<Plan> {
        Ok(plan.clone())
    }

    fn apply(&self, cx: &Cx, (link, _): (Link, Plan)) -> Result<Applied> {
        link.make(cx)
    }
}

/// Manage a hard link.
#[derive(Args)]
#[arg(open)]
pub struct Hardlink {
    /// The link.
    name: String,
    /// The file it is another name of.
    target: String,
    /// Replace a file that stands there.
    #[default(false)]
    force: bool,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
    /// The user of folders made.
    #[arg(alias = "owner")]
    user: Option<Owner>,
    /// The group of folders made.
    group: Option<Owner>,
    /// The mode of folders made.
    dir_mode: Option<Mode>,
}

impl State for Hardlink {
    type Seen = Found<String>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = given(cx, &self.name, "hardlink")?;
        let target = &self.target;
        let (user, group) = default_owner(cx, self.user.as_ref(), self.group.as_ref())?;
        let mut problems = Vec::new();
        if user.uid(cx).is_none() {
            problems.push(format!("User {user} does not exist"));
        }
        if group.gid(cx).is_none() {
            problems.push(format!("Group {group} does not exist"));
        }
        if !is_abs(&name) {
            problems.push(format!("Specified file {name} is not an absolute path"));
        }
        if !is_abs(target) {
            problems.push(format!("Specified target {target} is not an absolute path"));
        }
        if !problems.is_empty() {
            let end = if problems.len() > 1 { "." } else { "" };
            return Err(Error::failed(format!("{}{end}", problems.join(". "))));
        }
        let (at, to) = (Path::new(&name), Path::new(target));
        if cx.host.is_dir(at)? {
            return Err(Error::failed(format!("Unable to hard link to directory {name}")));
        }
        if cx.host.is_dir(to)? {
            return Err(Error::failed(format!("Unable to hard link from directory {target}")));
        }
        let Some(original) = cx.host.stat_if_there(to, false)? else {
            return Err(Error::failed(format!("Target {target} for hard link does not exist")));
        };
        let Some(stat) = cx.host.stat_if_there(at, false)? else {
            let plan = Plan::change("new", name.as_str())
                .pending(format!("Hard link {name} to {target} is set for creation"))
                .done(format!("Created new hard link {name} -> {target}"));
            return Ok(Found::todo(plan, name));
        };
        if stat.links > 1 {
            if (stat.inode, stat.device) == (original.inode, original.device) {
                return Ok(Found::right_but(
                    format!("The hard link {name} is presently targetting {target}"),
                    format!("Target of hard link {name} is already pointing to {target}"),
                ));
            }
            let plan = Plan::change("change", name.as_str())
                .pending(format!("Link {name} target is set to be changed to {target}"));
            return Ok(Found::todo(plan, name));
        }
        let mut plan = Plan::unknown();
        if self.force {
            plan.pending = format!(
                "The file or directory {name} is set for removal to make way for a new hard link \
                 targeting {target}"
            );
        } else {
            plan.test_result = Some(false);
            plan.pending = format!(
                "File or directory exists where the hard link {name} should be. Did you mean to \
                 use force?"
            );
        }
        Ok(Found::todo(plan, name))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some(name) = seen.work else { return Ok(Applied::as_planned()) };
        let target = &self.target;
        let at = Path::new(&name);
        let folder = parent(&name);
        if !cx.host.is_dir(Path::new(folder))? {
            if !self.makedirs {
                return Err(Error::failed(format!(
                    "Directory {folder} for hard link is not present"
                )));
            }
            let (user, group) = default_owner(cx, self.user.as_ref(), self.group.as_ref())?;
            make_folders(cx, folder, (Some(&user), Some(&group)), self.dir_mode.as_ref())?;
        }
        let changes = Dict::new();
        let mut comment = format!("Created new hard link {name} -> {target}");
        if let Some(stat) = cx.host.stat_if_there(at, false)? {
            if stat.links > 1 {
                comment = format!("Set target of hard link {name} -> {target}");
            } else if self.force {
                changes.insert("forced", "File for hard link was forcibly replaced");
            } else {
                return Err(Error::failed(format!(
                    "File exists where the hard link {name} should be"
                )));
            }
            cx.host.remove_file(at)?;
        }
        if let Err(error) = file::tree::link(cx, target.clone(), name.clone()) {
            let comment = format!("Unable to create new hard link {name} -> {target}: {error}");
            return Ok(Applied::failed(changes, comment));
        }
        changes.insert("new", name.as_str());
        Ok(Applied::changes(changes).comment(comment))
    }
}
