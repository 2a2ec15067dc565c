//! `file.mknod`: device files and named pipes.

use std::path::Path;

use halite_modules::file::{
    self,
    perms::{Mode, Owner, Wanted},
};
use halite_spec::{Applied, Args, Cx, Error, FromArg, Keys, Plan, Result, State, host::Kind};
use halite_value::Dict;

use super::{Found, given};

/// Manage a device file or a named pipe.
#[derive(Args)]
pub struct Mknod {
    /// The path.
    name: String,
    /// `c` for a character device, `b` for a block device, `p` for a pipe.
    ntype: String,
    /// The major number.
    #[default(0)]
    major: i64,
    /// The minor number.
    #[default(0)]
    minor: i64,
    /// The user.
    user: Option<Owner>,
    /// The group.
    group: Option<Owner>,
    /// The mode.
    #[default(Mode::new("0600"))]
    mode: Mode,
}

impl Mknod {
    fn wanted(&self) -> Wanted {
        Wanted::new(self.user.clone(), self.group.clone(), Some(self.mode.clone()))
    }
}

impl State for Mknod {
    const KEYS: Keys = Keys(["name", "changes", "comment", "result"]);
    /// The path, and whether the node is to be made.
    type Seen = Found<(String, bool)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = given(cx, &self.name, "mknod")?;
        let (kind, noun) = match self.ntype.as_str() {
            "c" => (Kind::Char, "character device"),
            "b" => (Kind::Block, "block device"),
            "p" => (Kind::Fifo, "fifo pipe"),
            other => {
                return Err(Error::failed(format!(
                    "Node type unavailable: '{other}'. Available node types are character ('c'), \
                     block ('b'), and pipe ('p')"
                )));
            }
        };
        let title = match kind {
            Kind::Char => "Character device",
            Kind::Block => "Block device",
            _ => "Fifo pipe",
        };
        let at = Path::new(&name);
        let stat = cx.host.stat_if_there(at, true)?;
        let Some(stat) = stat.filter(|stat| matches!(stat.kind, Kind::File) || stat.kind == kind)
        else {
            let plan = Plan::unknown().pending(format!("{title} {name} is set to be created"));
            return Ok(Found::todo(plan, (name, true)));
        };
        if stat.kind == Kind::File {
            return Err(Error::failed(format!(
                "File {name} exists and is not a {noun}. Refusing to continue"
            )));
        }
        let numbers = file::tree::get_devmm(cx, name.clone())?;
        let numbers = Vec::<i64>::from_arg(numbers).unwrap_or_default();
        if kind != Kind::Fifo && numbers != [self.major, self.minor] {
            let shown: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            return Err(Error::failed(format!(
                "{title} {name} exists and has a different major/minor {}. Refusing to continue",
                shown.join("/")
            )));
        }
        let differing = self.wanted().differences(cx, at, &stat);
        if differing.is_empty() {
            return Ok(Found::right(format!("{title} {name} is in the correct state")));
        }
        Ok(Found::todo(Plan::changes(differing), (name, false)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some((name, make)) = seen.work else { return Ok(Applied::as_planned()) };
        if !make {
            let enforced = self.wanted().enforce(cx, Path::new(&name), false)?;
            let result = enforced.problems.is_empty();
            return Ok(Applied {
                changes: Some(enforced.changes),
                comment: Some(enforced.problems.join("; ")),
                result: Some(result),
                extra: Dict::new(),
            });
        }
        let ret = file::tree::mknod(
            cx,
            name,
            self.ntype.clone(),
            self.major,
            self.minor,
            self.user.clone(),
            self.group.clone(),
            self.mode.clone(),
        )?;
        let changes = ret.get("changes").and_then(|changes| changes.as_dict().cloned());
        Ok(Applied {
            changes,
            comment: ret.get("comment").map(|comment| comment.to_str().to_string()),
            result: Some(ret.get("result").is_some_and(|result| result.truthy())),
            extra: Dict::new(),
        })
    }
}
