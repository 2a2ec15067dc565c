//! `disk`: checks of the space on disks.

use std::path::Path;

use halite_modules::disk;
use halite_spec::{Applied, Args, Cx, Error, Keys, Plan, Result, State, states};
use halite_value::Value;

states! {
    /// Checks of the space on disks.
    "disk": "status" => Status,
}

/// Check that the space used on a file system is in a range.
#[derive(Args)]
pub struct Status {
    /// A mount point, or a folder.
    name: String,
    /// The largest that is well: percents, or kilobytes.
    maximum: Option<Value>,
    /// The smallest that is well.
    minimum: Option<Value>,
    /// The limits are kilobytes.
    #[default(false)]
    absolute: bool,
    /// Look at the free space.
    #[default(false)]
    free: bool,
}

/// What was measured, as it is shown.
pub enum Space {
    Measured(f64),
    Missing,
}

impl Status {
    fn limit(&self, name: &str, value: Option<&Value>) -> Result<Option<f64>> {
        let Some(value) = value.filter(|value| value.truthy()) else { return Ok(None) };
        let text = value.to_string();
        let text = text.trim_end_matches('%').trim();
        let Ok(limit) = text.parse::<f64>() else {
            return Err(Error::failed(format!("{name} must be an integer ")));
        };
        if !self.absolute && !(0.0..=100.0).contains(&limit) {
            return Err(Error::failed(format!("{name} must be in the range [0, 100] ")));
        }
        Ok(Some(limit))
    }
}

impl State for Status {
    type Seen = Space;
    const KEYS: Keys = Keys(["name", "result", "comment", "changes"]);

    fn observe(&self, cx: &Cx) -> Result<Space> {
        let mounts = disk::usage(cx, None)?;
        let number = |own: &Value, key: &str| {
            let text = own.get_str(key).unwrap_or_default();
            text.trim_end_matches('%').parse::<f64>().unwrap_or(0.0)
        };
        if let Some(own) = mounts.get(self.name.as_str()) {
            return Ok(Space::Measured(match (self.absolute, self.free) {
                (true, false) => number(&own, "used"),
                (true, true) => number(&own, "available"),
                (false, false) => number(&own, "capacity"),
                (false, true) => 100.0 - number(&own, "capacity"),
            }));
        }
        if !cx.host.is_dir(Path::new(&self.name))? {
            return Ok(Space::Missing);
        }
        // A folder: the space of the file system it is on, with a digit more, as in Salt.
        let usage = ps_usage(cx, &self.name)?;
        Ok(Space::Measured(match (self.absolute, self.free) {
            (true, false) => usage.used / 1024.0,
            (true, true) => usage.free / 1024.0,
            (false, false) => usage.percent,
            (false, true) => 100.0 - usage.percent,
        }))
    }

    fn plan(&self, space: &Space) -> Result<Plan> {
        let maximum = self.limit("maximum", self.maximum.as_ref())?;
        let minimum = self.limit("minimum", self.minimum.as_ref())?;
        if let (Some(minimum), Some(maximum)) = (minimum, maximum)
            && minimum >= maximum
        {
            return Err(Error::failed("minimum must be less than maximum "));
        }
        let Space::Measured(value) = space else {
            let name = &self.name;
            return Err(Error::failed(format!(
                "Disk mount {name} not present. Directory {name} does not exist or is not a \
                 directory"
            )));
        };
        let what = if self.free { "available" } else { "used" };
        let unit = if self.absolute { "KB" } else { "%" };
        let shown = |number: f64| {
            if number.fract() == 0.0 { format!("{}", number as i64) } else { format!("{number}") }
        };
        let wrong = |where_to: &str, limit: f64| {
            Error::failed(format!(
                "Disk {what} space is {where_to} of {} {unit} at {} {unit}",
                shown(limit),
                shown(*value)
            ))
        };
        if let Some(minimum) = minimum.filter(|minimum| value < minimum) {
            return Err(wrong("below minimum", minimum));
        }
        if let Some(maximum) = maximum.filter(|maximum| value > maximum) {
            return Err(wrong("above maximum", maximum));
        }
        Ok(Plan::nothing(format!("Disk {what} space in acceptable range")))
    }

    fn apply(&self, _: &Cx, _: Space) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}

struct Usage {
    used: f64,
    free: f64,
    percent: f64,
}

fn ps_usage(cx: &Cx, path: &str) -> Result<Usage> {
    let space = cx.host.space(Path::new(path))?;
    let used = space.total.saturating_sub(space.free) as f64;
    let free = space.available as f64;
    let percent = if used + free > 0.0 { used / (used + free) * 100.0 } else { 0.0 };
    Ok(Usage { used, free, percent: (percent * 10.0).round() / 10.0 })
}
