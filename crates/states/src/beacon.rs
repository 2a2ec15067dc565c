//! `beacon`: what a minion watches.
//!
// differs: with `test=True` genuine Salt says True where a run would change something, and names no
// changes; here it is None, and a new, removed or switched beacon is a change.

use std::marker::PhantomData;

use halite_modules::beacons as module;
use halite_spec::{Applied, Args, Binder, Cx, Error, Param, Plan, Rest, Result, State, states};
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

/// A state module whose `beacon: True` has what its states manage watched.
///
/// The engine runs it as `<module>.mod_beacon` once all states have run.
pub trait Watchable {
    const MODULE: &'static str;
    /// The functions that can be watched.
    const ABLE: &'static [&'static str];
    /// The beacon's module.
    const BEACON: &'static str;
    /// The manual page.
    const DOC: &'static str;

    /// The beacon's configuration, given the function that was called.
    fn settings(name: &str, given: &Dict, function: &str) -> Dict;
}

/// The arguments of every `mod_beacon`.
#[derive(Args)]
struct Wish {
    /// What the state manages: the file, the service, the package.
    name: String,
    /// `sfun`, the state's function; `beacon`, whether to watch; `beacon_data` (for `pkg`, `pkgs`)
    /// with settings of the beacon.
    rest: Rest,
}

/// The state `mod_beacon` of a module.
pub struct Watched<W> {
    wish: Wish,
    module: PhantomData<W>,
}

impl<W: Watchable> Args for Watched<W> {
    const DOC: &'static str = W::DOC;
    const PARAMS: &'static [Param] = Wish::PARAMS;
    const OPEN: bool = false;

    fn bind(binder: &mut Binder) -> Result<Self> {
        Ok(Self { wish: binder.group()?, module: PhantomData })
    }
}

impl<W: Watchable> Watched<W> {
    /// The beacon it asks for, if it does.
    fn beacon(&self) -> Result<Option<Present>> {
        let Wish { name, rest: Rest { kwargs, .. } } = &self.wish;
        if !kwargs.get("beacon").is_some_and(|wanted| wanted.truthy()) {
            return Ok(None);
        }
        let function = kwargs.get("sfun").unwrap_or_default().to_str();
        if !W::ABLE.contains(&function.as_str()) {
            let what = if W::MODULE == "pkg" { "mod_beacon" } else { "beacon" };
            return Err(Error::failed(format!(
                "{}.{function} does not work with the {what} state function",
                W::MODULE
            )));
        }
        let settings = W::settings(name, kwargs, &function);
        settings.insert("beacon_module", W::BEACON);
        let rest = Rest { kwargs: settings, ..Rest::default() };
        Ok(Some(Present { name: format!("beacon_{}_{name}", W::BEACON), save: false, rest }))
    }
}

impl<W: Watchable> State for Watched<W> {
    /// The beacon, and what [`Present`] sees of it.
    type Seen = Option<(Present, <Present as State>::Seen)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let Some(beacon) = self.beacon()? else { return Ok(None) };
        let seen = beacon.observe(cx)?;
        Ok(Some((beacon, seen)))
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        let Some((beacon, seen)) = seen else { return Ok(Plan::nothing("Not adding beacon.")) };
        let plan = beacon.plan(seen)?;
        plan.extra.insert("name", beacon.name.as_str());
        Ok(plan)
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        match seen {
            None => Ok(Applied::as_planned()),
            Some((beacon, seen)) => beacon.apply(cx, seen),
        }
    }
}

/// Takes settings of `beacon_data` that a beacon knows, over its usual ones.
fn over(usual: Dict, given: &Dict) -> Dict {
    let given = given.get("beacon_data").and_then(|data| data.as_dict().cloned());
    for key in usual.keys() {
        if let Some(value) = given.as_ref().and_then(|given| given.get(key.to_str().as_str())) {
            usual.insert(key, value);
        }
    }
    usual
}

pub struct Files;

impl Watchable for Files {
    const MODULE: &'static str = "file";
    const ABLE: &'static [&'static str] = &["managed", "directory"];
    const BEACON: &'static str = "inotify";
    const DOC: &'static str = "\
Have a managed file or folder watched: what `beacon: True` of a `file` state asks for.

```console
$ salt web1 state.single file.mod_beacon name=/etc/motd sfun=managed beacon=True
```";

    fn settings(name: &str, given: &Dict, function: &str) -> Dict {
        let usual = entries! { "mask" => Value::list(["create", "delete", "modify"]) };
        if function == "directory" {
            usual.update(&entries! {
                "recurse" => true, "auto_add" => true, "exclude" => Vec::<Value>::new(),
            });
        }
        let data = entries! { "files" => entries! { name => over(usual, given) } };
        data.update(&over(entries! { "interval" => 60, "coalesce" => false }, given));
        data
    }
}

pub struct Services;

impl Watchable for Services {
    const MODULE: &'static str = "service";
    const ABLE: &'static [&'static str] = &["running", "dead"];
    const BEACON: &'static str = "service";
    const DOC: &'static str = "\
Have a service watched: what `beacon: True` of a `service` state asks for.

```console
$ salt web1 state.single service.mod_beacon name=nginx sfun=running beacon=True
```";

    fn settings(name: &str, given: &Dict, _: &str) -> Dict {
        let usual = entries! {
            "onchangeonly" => true, "delay" => 0, "emitatstartup" => false,
            "uncleanshutdown" => Value::Null,
        };
        let data = entries! { "services" => entries! { name => over(usual, given) } };
        data.update(&over(entries! { "interval" => 60 }, given));
        data
    }
}

pub struct Packages;

impl Watchable for Packages {
    const MODULE: &'static str = "pkg";
    const ABLE: &'static [&'static str] = &["installed", "removed"];
    const BEACON: &'static str = "pkg";
    const DOC: &'static str = "\
Have packages watched: what `beacon: True` of a `pkg` state asks for.

```console
$ salt web1 state.single pkg.mod_beacon name=nginx sfun=installed beacon=True
```";

    fn settings(name: &str, given: &Dict, _: &str) -> Dict {
        let pkgs = given.get("pkgs").filter(Value::truthy);
        // Genuine Salt heeds no `beacon_data` here.
        entries! { "pkgs" => pkgs.unwrap_or_else(|| Value::list([name])), "interval" => 60 }
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
