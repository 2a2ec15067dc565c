//! `publish`: have the master run something on other minions, as far as its `peer` option allows.

use std::time::{Duration, Instant};

use halite_spec::{Args, Cx, Error, Result, function, module};
use halite_value::{Dict, Value, dict, yaml};

module! {
    /// Have the master run something on other minions.
    "publish": full_data, publish, runner,
}

const LOOK: Duration = Duration::from_millis(300);

/// Reads arguments as the command line does: YAML, one or a list.
fn arguments(arg: Option<Value>) -> Vec<Value> {
    let parsed = match arg {
        Some(Value::Str(text)) => yaml::load_str(&text).unwrap_or_else(|_| text.into()),
        Some(other) => other,
        None => return Vec::new(),
    };
    match parsed {
        Value::Null => Vec::new(),
        list @ (Value::List(_) | Value::Tuple(_)) => list.items_of_sequence().unwrap_or_default(),
        one => vec![one],
    }
}

fn has_master(cx: &Cx) -> bool {
    cx.opts.contains("master_uri")
}

/// What is to be run, and where.
#[derive(Args)]
pub struct Wish {
    /// The minions meant.
    pub tgt: Value,
    /// The function.
    pub fun: String,
    /// Its arguments: one, or a list.
    pub arg: Option<Value>,
    /// How `tgt` is read.
    #[default("glob".to_owned())]
    pub tgt_type: String,
    /// Returners.
    #[default(String::new())]
    pub returner: String,
    /// Seconds to wait.
    #[default(5.0)]
    #[shown(5i64)]
    pub timeout: f64,
}

/// Asks the master, and waits for returns: all of each, or what its function returned.
fn ask(cx: &Cx, wish: Wish, full: bool) -> Result<Value> {
    let fun = wish.fun;
    if !has_master(cx) {
        tracing::error!("publish needs a master, and this minion runs without one");
        return Ok(Value::dict());
    }
    if fun.starts_with("publish.") {
        tracing::info!("{fun} is not published: publishing must not go in circles");
        return Ok(Value::dict());
    }
    let load = dict! {
        "cmd" => "minion_pub", "fun" => &fun, "arg" => arguments(wish.arg), "tgt" => wish.tgt,
        "tgt_type" => wish.tgt_type, "ret" => wish.returner, "tmo" => wish.timeout,
        "form" => if full { "full" } else { "clean" }, "id" => cx.id(),
        "no_parse" => cx.opt("no_parse").unwrap_or_else(|| Value::list(Vec::<Value>::new())),
    };
    let published = match cx.runtime.ask_master(cx, load) {
        Ok(published) => published,
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(_) => return Ok(format!("'{fun}' publish timed out").into()),
    };
    let (Some(jid), Some(minions)) = (published.get("jid"), published.get("minions")) else {
        return Ok(Value::dict());
    };
    let expected = minions.items_of_sequence().unwrap_or_default();
    let end = Instant::now() + Duration::try_from_secs_f64(wish.timeout).unwrap_or_default();
    if expected.is_empty() {
        // Allowed, but nobody is meant: Salt's `None`. What is not allowed answers `{}`.
        return Ok(Value::Null);
    }
    loop {
        let load = dict! { "cmd" => "pub_ret", "id" => cx.id(), "jid" => &jid };
        let Value::Dict(returned) = cx.runtime.ask_master(cx, load)? else {
            return Ok(Value::dict());
        };
        let missing = expected.iter().any(|id| !returned.contains(id.to_str().as_str()));
        if !missing || Instant::now() > end {
            return Ok(if full { returned.into() } else { clean(&returned).into() });
        }
        cx.sleep(LOOK)?;
    }
}

fn clean(returned: &Dict) -> Dict {
    returned.into_iter().map(|(id, ret)| (id, ret.get("ret").unwrap_or_default())).collect()
}

/// Run a function on other minions and return what they return.
///
/// ```console
/// $ salt web1 publish.publish 'db*' network.ip_addrs
/// ```
#[function]
pub fn publish(
    cx: &Cx,
    #[group] wish: Wish,
    /// The master to use, of several.
    via_master: Option<String>,
) -> Result<Value> {
    if via_master.is_some() && !cx.opts.contains("master_uri_list") {
        return Err(Error::invalid(
            "Could not find list of masters in minion configuration but `via_master` was specified.",
        ));
    }
    ask(cx, wish, false)
}

/// Run a function on other minions and return everything they send.
///
/// ```console
/// $ salt web1 publish.full_data 'db*' network.ip_addrs
/// ```
#[function]
pub fn full_data(cx: &Cx, #[group] wish: Wish) -> Result<Value> {
    ask(cx, wish, true)
}

/// Run a runner function on the master, as far as its `peer_run` option allows.
///
/// ```console
/// $ salt web1 publish.runner manage.up
/// ```
#[function]
pub fn runner(
    cx: &Cx,
    /// The runner function.
    fun: String,
    /// Its arguments: one, or a list.
    arg: Option<Value>,
    /// Seconds to wait.
    #[default(5.0)]
    #[shown(5i64)]
    timeout: f64,
) -> Result<Value> {
    if !has_master(cx) {
        let text = "No access to master. If using salt-call with --local, please remove.";
        return Ok(text.into());
    }
    let load = dict! {
        "cmd" => "minion_runner", "fun" => &fun, "arg" => arguments(arg), "tmo" => timeout,
        "id" => cx.id(), "no_parse" => cx.opt("no_parse").unwrap_or_else(|| Value::list(Vec::<Value>::new())),
    };
    match cx.runtime.ask_master(cx, load) {
        Err(Error::Failed(_)) => Ok(format!("'{fun}' runner publish timed out").into()),
        done => done,
    }
}
