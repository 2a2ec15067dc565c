//! The device of a proxy minion: finding out which, and connecting with it.
//!
//! A proxy minion is a minion that speaks for a device. Its pillar says which (`proxy: {proxytype:
//! NAME, …}`), users' Python or an installed `salt` package has the module that talks to it, and the
//! interpreter behind the bridge holds the connection, for all jobs. The daemon and `salt-call
//! --proxyid` begin alike; what is different lies in [`crate::daemon`].
//!
//! Absent on purpose: `metaproxy: deltaproxy`, one process for many devices.

use halite_spec::{Call, Cx, Refresh};
use halite_value::{
    Dict, Key, SmolStr, Value,
    merge::{Strategy, merge},
};

use crate::{Python, Rendering};

/// Why there is no device to speak for.
#[derive(Debug, thiserror::Error)]
pub enum NoDevice {
    #[error(
        "No proxy key found in pillar or opts for id {0}. Check your pillar/opts configuration and contents.  Salt-proxy aborted."
    )]
    NoKey(SmolStr),
    #[error("The proxy configuration of {0} names no proxytype. Salt-proxy aborted.")]
    NoType(SmolStr),
    #[error(
        "metaproxy: {0} is not available: Halite has one process per device. Start a salt-proxy for each of the sub_proxy_ids. Salt-proxy aborted."
    )]
    Meta(SmolStr),
    #[error("Proxymodule {0} needs Python, and extension_modules is not set. Salt-proxy aborted.")]
    NoPython(SmolStr),
    #[error("Proxymodule {module} could not be loaded: {why}. Salt-proxy aborted.")]
    Lacks { module: SmolStr, why: String },
    #[error("Proxymodule {module} failed to connect: {why}. Salt-proxy aborted.")]
    Failed { module: SmolStr, why: String },
}

/// A device that we are connected with.
#[derive(Clone, Debug)]
pub struct Device {
    /// The name of its proxy module.
    pub module: SmolStr,
    /// The module can tell how the connection is.
    pub has_alive: bool,
}

/// Finds the device and connects with it. `others` are options that later calls start from.
/// Blocking.
pub fn begin(cx: &Cx, others: &[&Dict], rendering: &dyn Rendering) -> Result<Device, NoDevice> {
    let module = configure(&cx.opts, others, &cx.pillar)?;
    let python = rendering.python().ok_or_else(|| NoDevice::NoPython(module.clone()))?;
    // The module itself may come from the file server.
    let quietly = Call::default().with("refresh", false);
    if let Err(error) = cx.call("saltutil.sync_all", quietly) {
        tracing::error!("users' modules are not brought over: {error}");
    }
    let device = connect(&python, cx, module)?;
    if let Err(error) = cx.runtime.clone().refresh(cx, Refresh::Grains) {
        tracing::error!("the grains of the device cannot be collected: {error}");
    }
    Ok(device)
}

/// Puts what the pillar says about the device into the options; returns the name of its module.
fn configure(opts: &Dict, others: &[&Dict], pillar: &Dict) -> Result<SmolStr, NoDevice> {
    let id = opts.get("id").unwrap_or_default().to_str();
    let is_set = |name: &str| opts.get(name).is_some_and(|value| value.truthy());
    let put = |name: &str, value: &Value| {
        opts.insert(name, value);
        others.iter().for_each(|others| drop(others.insert(name, value)));
    };
    let proxy = pillar.get("proxy").filter(Value::truthy).or_else(|| opts.get("proxy"));
    let proxy = proxy.filter(Value::truthy).ok_or_else(|| NoDevice::NoKey(id.clone()))?;
    put("proxy", &proxy);
    if is_set("proxy_merge_pillar_in_opts") {
        for (name, value) in &joined(opts, pillar) {
            put(&name.to_str(), &value);
        }
    }
    let meta = opts.get("metaproxy").filter(Value::truthy).map(|meta| meta.to_str());
    if let Some(meta) = meta.filter(|meta| meta != "proxy") {
        return Err(NoDevice::Meta(meta));
    }
    let module = proxy.get("proxytype").filter(Value::truthy);
    module.map(|module| module.to_str()).ok_or(NoDevice::NoType(id))
}

/// The pillar as options: with `proxy_deep_merge_pillar_in_opts` maps of both become one.
fn joined(opts: &Dict, pillar: &Dict) -> Dict {
    let text = |name: &str| opts.get(name).unwrap_or_default().to_str();
    let strategy = Strategy::named(&text("proxy_merge_pillar_in_opts_strategy"), &text("renderer"));
    let is_deep = opts.get("proxy_deep_merge_pillar_in_opts").is_some_and(|deep| deep.truthy());
    let join = |name: &Key, value: Value| match opts.get(name) {
        Some(old) if is_deep => {
            merge(&old, &value, strategy.unwrap_or(Strategy::Recurse), false).unwrap_or(value)
        }
        _ => value,
    };
    pillar.entries().into_iter().map(|(name, value)| (name.clone(), join(&name, value))).collect()
}

// differs: Salt calls `init` in the process of every job; here one connection serves them all.
fn connect(python: &Python, cx: &Cx, module: SmolStr) -> Result<Device, NoDevice> {
    match python.begin_device(cx, &module) {
        Ok(Value::Str(why)) => Err(NoDevice::Lacks { module, why: why.into() }),
        Ok(has_alive) => Ok(Device { module, has_alive: has_alive.truthy() }),
        Err(error) => Err(NoDevice::Failed { module, why: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use halite_value::{dict, entries};

    use super::*;

    #[test]
    fn the_pillar_says_what_device_it_is() {
        let proxy = dict! { "proxytype" => "gadget", "host" => "h" };
        let check = |opts: Dict, pillar: Dict| {
            opts.insert("id", "p1");
            let later = Dict::new();
            let found = configure(&opts, &[&later], &pillar).map_err(|error| error.to_string());
            assert_eq!(opts.get("proxy"), later.get("proxy"));
            (found.map(String::from), opts.get("proxy"))
        };
        let (found, kept) = check(Dict::new(), entries! { "proxy" => proxy.clone() });
        assert_eq!((found, kept), (Ok("gadget".into()), Some(proxy.clone())));
        // The configuration may say it, too.
        let (found, _) = check(entries! { "proxy" => proxy.clone() }, Dict::new());
        assert_eq!(found, Ok("gadget".into()));
        let (found, _) = check(Dict::new(), Dict::new());
        assert!(found.unwrap_err().starts_with("No proxy key found in pillar or opts for id p1."));
        let (found, _) = check(Dict::new(), entries! { "proxy" => dict! { "host" => "h" } });
        assert!(found.unwrap_err().contains("names no proxytype"));
        let delta = entries! { "metaproxy" => "deltaproxy" };
        let (found, _) = check(delta, entries! { "proxy" => proxy });
        assert!(found.unwrap_err().contains("metaproxy: deltaproxy is not available"));
    }

    #[test]
    fn the_pillar_becomes_options() {
        let proxy = dict! { "proxytype" => "gadget" };
        let pillar = entries! { "proxy" => proxy, "own" => dict! { "b" => 2 }, "color" => "red" };
        let check = |deep: bool, expected: Value| {
            let opts = entries! {
                "proxy_merge_pillar_in_opts" => true, "proxy_deep_merge_pillar_in_opts" => deep,
                "proxy_merge_pillar_in_opts_strategy" => "smart", "own" => dict! { "a" => 1 },
            };
            assert!(configure(&opts, &[], &pillar).is_ok());
            assert_eq!((opts.get("own"), opts.get("color")), (Some(expected), Some("red".into())));
        };
        check(false, dict! { "b" => 2 });
        check(true, dict! { "a" => 1, "b" => 2 });
    }
}
