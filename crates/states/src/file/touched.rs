//! `file.touch`.

use std::path::Path;

use halite_modules::file::{
    paths::parent,
    tree::{make_folders, time_of, touch_at},
};
use halite_spec::{Applied, Args, Cx, Error, Plan, Result, State};
use halite_value::{Value, entries};

use super::{Found, absolute};

/// Set the times of a file, making an empty one if it is not there.
#[derive(Args)]
pub struct Touch {
    /// The file.
    name: String,
    /// When it was last read, in seconds since 1970; now, if not given.
    atime: Option<Value>,
    /// When it was last changed.
    mtime: Option<Value>,
    /// Make the folders above it.
    #[default(false)]
    makedirs: bool,
}

impl State for Touch {
    /// The file, and whether it is a new one.
    type Seen = Found<(String, bool)>;
    const REPEATS: bool = true;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let name = absolute(cx, &self.name, "touch")?;
        let stat = cx.host.stat_if_there(Path::new(&name), true)?;
        let is_new = stat.is_none();
        let plan = match stat {
            None => Plan::change("new", name.as_str())
                .pending(format!("File {name} is set to be created"))
                .done(format!("Created empty file {name}")),
            Some(stat) => {
                let differs = |given: Option<&Value>, now: f64| -> Result<bool> {
                    Ok(time_of(given)?.is_some_and(|given| given != now))
                };
                // The time that is not given becomes now.
                let changes = self.atime.is_some() != self.mtime.is_some()
                    || differs(self.atime.as_ref(), stat.atime)?
                    || differs(self.mtime.as_ref(), stat.mtime)?;
                let what =
                    if stat.kind == halite_spec::host::Kind::Dir { "directory" } else { "file" };
                let done = format!("Updated times on {what} {name}");
                if changes {
                    Plan::change("touched", name.as_str())
                        .pending(format!("Times set to be updated on file {name}"))
                        .done(done)
                } else {
                    // Salt touches all the same; in a test it calls the file right, and new.
                    let plan = Plan::change("new", name.as_str())
                        .pending(format!("File {name} exists and has the correct times"))
                        .done(done);
                    Plan { test_result: Some(true), ..plan }
                }
            }
        };
        Ok(Found::todo(plan, (name, is_new)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        Ok(seen.plan.clone())
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let Some((name, is_new)) = seen.work else { return Ok(Applied::as_planned()) };
        let folder = parent(&name);
        if !cx.host.is_dir(Path::new(folder))? {
            if !self.makedirs {
                return Err(Error::failed(format!("Directory not present to touch file {name}")));
            }
            make_folders(cx, folder, (None, None), None)?;
        }
        let (atime, mtime) = (time_of(self.atime.as_ref())?, time_of(self.mtime.as_ref())?);
        touch_at(cx, Path::new(&name), atime, mtime)?;
        let key = if is_new { "new" } else { "touched" };
        Ok(Applied::changes(entries! { key => name }))
    }
}
