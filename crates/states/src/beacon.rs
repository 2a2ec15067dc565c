//! `beacon`: what a minion watches.
//!
// differs: with `test=True` genuine Salt says True where a run would change something, and names no
// changes; here it is None, and a new, removed or switched beacon is a change.

use halite_modules::beacons as module;
use halite_spec::{Applied, Args, Cx, Error, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// What a minion watches.
    "beacon":
    "present" => Present,
    "absent" => Absent,
    "enabled" => Enabled,
    "disabled" => Disabled,
}

fn configured(cx: &Cx, name: &str) -> Result<Option<Value>> {
    Ok(module::list(cx, false, true, true, Rest::default())?.get(name))
}

fn succeeded(answer: Value) -> Result<()> {
    if answer.get("result").is_some_and(|result| result.truthy()) {
        return Ok(());
    }
    Err(Error::failed(answer.get("comment").unwrap_or_default().to_str().to_string()))
}

/// Have a beacon.
///
/// ```console
/// $ salt '*' state.single beacon.present name=ps processes='{nginx: running}' save=True
/// ```
#[derive(Args)]
pub struct Present {
    /// The beacon.
    name: String,
    /// Write it to `beacons.conf`.
    #[default(false)]
    save: bool,
    /// Its configuration; `beacon_data` may hold a list of it.
    rest: Rest,
}

impl Present {
    fn data(&self) -> Value {
        let mut items = Vec::new();
        for (key, value) in &self.rest.kwargs {
            match key.to_str().as_str() {
                name if name.starts_with("__") => {}
                "beacon_data" => {
                    items.extend(value.items_of_sequence().unwrap_or_else(|| vec![value]));
                }
                _ => items.push(entries! { key => value }.into()),
            }
        }
        Value::list(items)
    }

    fn saved(&self, comment: String) -> String {
        if self.save { format!("{comment}\nBeacon {} saved", self.name) } else { comment }
    }
}

impl State for Present {
    /// Its configuration, and whether the file has it.
    type Seen = (Option<Value>, bool);

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let seen = configured(cx, &self.name)?;
        if seen.is_none() {
            let test = Rest { kwargs: entries! { "test" => true }, ..Rest::default() };
            succeeded(module::add(cx, self.name.clone(), self.data(), test)?)?;
        }
        let saved = self.save && module::saved(cx)?.get(self.name.as_str()) == seen;
        Ok((seen, saved))
    }

    fn plan(&self, (seen, saved): &Self::Seen) -> Result<Plan> {
        let name = &self.name;
        let data = self.data();
        Ok(match seen {
            None => Plan::change(name.as_str(), "added")
                .pending(format!("Beacon: {name} would be added."))
                .done(self.saved(format!("Adding {name} to beacons"))),
            Some(now) if *now == data && self.save && !saved => {
                Plan::change(name.as_str(), "saved")
                    .pending(format!("Beacon: {name} would be saved."))
                    .done(self.saved(format!("Job {name} in correct state")))
            }
            Some(now) if *now == data => {
                Plan::nothing(self.saved(format!("Job {name} in correct state")))
            }
            Some(now) => Plan::change("diff", module::difference(now, &data))
                .pending(format!("Beacon: {name} would be modified."))
                .done(self.saved(format!("Modifying {name} in beacons"))),
        })
    }

    fn apply(&self, cx: &Cx, (seen, _): Self::Seen) -> Result<Applied> {
        let (name, data) = (self.name.clone(), self.data());
        let answer = match seen {
            None => module::add(cx, name, data, Rest::default()),
            Some(_) => module::modify(cx, name, data, Rest::default()),
        };
        succeeded(answer?)?;
        if self.save {
            succeeded(module::save(cx, Rest::default())?)?;
        }
        Ok(Applied::as_planned())
    }
}

/// Have no beacon of that name.
///
/// ```console
/// $ salt '*' state.single beacon.absent name=ps
/// ```
#[derive(Args)]
pub struct Absent {
    /// The beacon.
    name: String,
    /// Write what is left to `beacons.conf`.
    #[default(false)]
    save: bool,
    /// Accepted, as in Salt.
    rest: Rest,
}

impl State for Absent {
    type Seen = bool;

    fn observe(&self, cx: &Cx) -> Result<bool> {
        let _ = &self.rest;
        Ok(configured(cx, &self.name)?.is_some())
    }

    fn plan(&self, there: &bool) -> Result<Plan> {
        let name = &self.name;
        let saved = if self.save { format!("\nBeacon {name} saved") } else { String::new() };
        Ok(if *there {
            Plan::change(name.as_str(), "removed")
                .pending(format!("Beacon: {name} would be deleted."))
                .done(format!("Removed {name} from beacons{saved}"))
        } else {
            Plan::nothing(format!("{name} not configured in beacons"))
        })
    }

    fn apply(&self, cx: &Cx, _: bool) -> Result<Applied> {
        succeeded(module::delete(cx, self.name.clone(), Rest::default())?)?;
        if self.save {
            succeeded(module::save(cx, Rest::default())?)?;
        }
        Ok(Applied::as_planned())
    }
}

/// What `beacon: True` of a state asks for: the beacon that watches what the state manages.
///
/// The engine runs it as `<module>.mod_beacon` once all states have run.
struct Asked {
    /// The state's module.
    module: &'static str,
    /// The functions of it that can be watched.
    able: &'static [&'static str],
    /// The beacon's module.
    beacon: &'static str,
}

const FILE: Asked = Asked { module: "file", able: &["managed", "directory"], beacon: "inotify" };
const SERVICE: Asked = Asked { module: "service", able: &["running", "dead"], beacon: "service" };
const PKG: Asked = Asked { module: "pkg", able: &["installed", "removed"], beacon: "pkg" };

/// What is to be done about it.
pub enum Watched {
    Not,
    By(Box<Present>, (Option<Value>, bool)),
}

impl Asked {
    fn observe(
        &self,
        cx: &Cx,
        name: &str,
        rest: &Rest,
        data: impl FnOnce(&str) -> Dict,
    ) -> Result<Watched> {
        let text = |key: &str| rest.kwargs.get(key).map(|value| value.to_str()).unwrap_or_default();
        if !rest.kwargs.get("beacon").is_some_and(|wanted| wanted.truthy()) {
            return Ok(Watched::Not);
        }
        let fun = text("sfun");
        if !self.able.contains(&fun.as_str()) {
            let what = if self.module == "pkg" { "mod_beacon" } else { "beacon" };
            return Err(Error::failed(format!(
                "{}.{fun} does not work with the {what} state function",
                self.module
            )));
        }
        let kwargs = data(&fun);
        kwargs.insert("beacon_module", self.beacon);
        let rest = Rest { kwargs, ..Rest::default() };
        let beacon = Present { name: format!("beacon_{}_{name}", self.beacon), save: false, rest };
        let seen = beacon.observe(cx)?;
        Ok(Watched::By(Box::new(beacon), seen))
    }
}

impl Watched {
    fn plan(&self) -> Result<Plan> {
        match self {
            Self::Not => Ok(Plan::nothing("Not adding beacon.")),
            Self::By(beacon, seen) => {
                let plan = beacon.plan(seen)?;
                plan.extra.insert("name", beacon.name.as_str());
                Ok(plan)
            }
        }
    }

    fn apply(self, cx: &Cx) -> Result<Applied> {
        match self {
            Self::Not => Ok(Applied::as_planned()),
            Self::By(beacon, seen) => beacon.apply(cx, seen),
        }
    }
}

/// Takes settings of `beacon_data` that a beacon knows, over its usual ones.
fn over(usual: Dict, rest: &Rest) -> Dict {
    let given = rest.kwargs.get("beacon_data").and_then(|data| data.as_dict().cloned());
    for key in usual.keys() {
        if let Some(value) = given.as_ref().and_then(|given| given.get(key.to_str().as_str())) {
            usual.insert(key, value);
        }
    }
    usual
}

/// Have a managed file or folder watched: what `beacon: True` of a `file` state asks for.
///
/// ```console
/// $ salt '*' state.apply watched.files
/// ```
#[derive(Args)]
pub struct FileWatched {
    /// The file.
    name: String,
    /// `beacon`, and `beacon_data` with settings of the beacon.
    rest: Rest,
}

impl State for FileWatched {
    type Seen = Watched;

    fn observe(&self, cx: &Cx) -> Result<Watched> {
        FILE.observe(cx, &self.name, &self.rest, |fun| {
            let usual = entries! { "mask" => Value::list(["create", "delete", "modify"]) };
            if fun == "directory" {
                usual.update(&entries! {
                    "recurse" => true, "auto_add" => true, "exclude" => Vec::<Value>::new(),
                });
            }
            let data = entries! {
                "files" => entries! { self.name.as_str() => over(usual, &self.rest) },
            };
            data.update(&over(entries! { "interval" => 60, "coalesce" => false }, &self.rest));
            data
        })
    }

    fn plan(&self, seen: &Watched) -> Result<Plan> {
        seen.plan()
    }

    fn apply(&self, cx: &Cx, seen: Watched) -> Result<Applied> {
        seen.apply(cx)
    }
}

/// Have a service watched: what `beacon: True` of a `service` state asks for.
///
/// ```console
/// $ salt '*' state.apply watched.services
/// ```
#[derive(Args)]
pub struct ServiceWatched {
    /// The service.
    name: String,
    /// `beacon`, and `beacon_data` with settings of the beacon.
    rest: Rest,
}

impl State for ServiceWatched {
    type Seen = Watched;

    fn observe(&self, cx: &Cx) -> Result<Watched> {
        SERVICE.observe(cx, &self.name, &self.rest, |_| {
            let usual = entries! {
                "onchangeonly" => true, "delay" => 0, "emitatstartup" => false,
                "uncleanshutdown" => Value::Null,
            };
            let data = entries! {
                "services" => entries! { self.name.as_str() => over(usual, &self.rest) },
            };
            data.update(&over(entries! { "interval" => 60 }, &self.rest));
            data
        })
    }

    fn plan(&self, seen: &Watched) -> Result<Plan> {
        seen.plan()
    }

    fn apply(&self, cx: &Cx, seen: Watched) -> Result<Applied> {
        seen.apply(cx)
    }
}

/// Have packages watched: what `beacon: True` of a `pkg` state asks for.
///
/// ```console
/// $ salt '*' state.apply watched.packages
/// ```
#[derive(Args)]
pub struct PkgWatched {
    /// The package.
    name: String,
    /// `beacon`, and `pkgs` for several packages.
    rest: Rest,
}

impl State for PkgWatched {
    type Seen = Watched;

    fn observe(&self, cx: &Cx) -> Result<Watched> {
        PKG.observe(cx, &self.name, &self.rest, |_| {
            let pkgs = self.rest.kwargs.get("pkgs").filter(|pkgs| pkgs.truthy());
            // Genuine Salt heeds no `beacon_data` here.
            entries! {
                "pkgs" => pkgs.unwrap_or_else(|| Value::list([self.name.as_str()])),
                "interval" => 60,
            }
        })
    }

    fn plan(&self, seen: &Watched) -> Result<Plan> {
        seen.plan()
    }

    fn apply(&self, cx: &Cx, seen: Watched) -> Result<Applied> {
        seen.apply(cx)
    }
}

/// Tells whether a beacon runs; `None` if there is none.
fn is_enabled(cx: &Cx, name: &str) -> Result<Option<bool>> {
    let data = configured(cx, name)?;
    Ok(data.map(|data| {
        let items = data.items_of_sequence().unwrap_or_else(|| vec![data]);
        let switch = items
            .iter()
            .rev()
            .find_map(|item| item.as_dict().and_then(|item: &Dict| item.get("enabled")));
        switch.is_none_or(|enabled| enabled.truthy())
    }))
}

/// Have a beacon run.
///
/// ```console
/// $ salt '*' state.single beacon.enabled name=ps
/// ```
#[derive(Args)]
pub struct Enabled {
    /// The beacon.
    name: String,
    /// Accepted, as in Salt.
    rest: Rest,
}

impl State for Enabled {
    type Seen = Option<bool>;

    fn observe(&self, cx: &Cx) -> Result<Option<bool>> {
        let _ = &self.rest;
        is_enabled(cx, &self.name)
    }

    fn plan(&self, seen: &Option<bool>) -> Result<Plan> {
        let name = &self.name;
        Ok(match seen {
            None => Plan::nothing(format!("{name} not a configured beacon")),
            Some(true) => Plan::nothing(format!("Enabled {name} from beacons")),
            Some(false) => Plan::change(name.as_str(), "enabled")
                .pending(format!("Beacon {name} would be enabled."))
                .done(format!("Enabled {name} from beacons")),
        })
    }

    fn apply(&self, cx: &Cx, _: Option<bool>) -> Result<Applied> {
        succeeded(module::enable_beacon(cx, self.name.clone(), Rest::default())?)?;
        Ok(Applied::as_planned())
    }
}

/// Keep a beacon from running.
///
/// ```console
/// $ salt '*' state.single beacon.disabled name=ps
/// ```
#[derive(Args)]
pub struct Disabled {
    /// The beacon.
    name: String,
    /// Accepted, as in Salt.
    rest: Rest,
}

impl State for Disabled {
    type Seen = Option<bool>;

    fn observe(&self, cx: &Cx) -> Result<Option<bool>> {
        let _ = &self.rest;
        is_enabled(cx, &self.name)
    }

    fn plan(&self, seen: &Option<bool>) -> Result<Plan> {
        let name = &self.name;
        Ok(match seen {
            None => Plan::nothing(format!("Job {name} is not configured.")),
            Some(false) => Plan::nothing(format!("Disabled beacon {name}.")),
            Some(true) => Plan::change(name.as_str(), "disabled")
                .pending("Beacons would be disabled.")
                .done(format!("Disabled beacon {name}.")),
        })
    }

    fn apply(&self, cx: &Cx, _: Option<bool>) -> Result<Applied> {
        succeeded(module::disable_beacon(cx, self.name.clone(), Rest::default())?)?;
        Ok(Applied::as_planned())
    }
}
