//! `ethtool`: settings of network interfaces, over the program of that name.
//!
//! Salt asks a Python library for some of it; the program tells the same, in words.

use halite_spec::{Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, Value, entries};

use crate::cmd::{Options, Ran, plain};

module! {
    /// Settings of network interfaces.
    "ethtool", needs = [
        Need::for_library(&["ethtool"], "The ethtool module could not be loaded: ethtool python libraries not found."),
    ]: show_ring, show_coalesce, show_driver, set_ring, set_coalesce, show_offload, set_offload,
    show_pause, set_pause, show_features, set_feature,
}

/// Sizes of rings, as the program names them.
const RINGS: [(&str, &str, &str); 4] = [
    ("rx", "rx", "RX"),
    ("rx_mini", "rx-mini", "RX Mini"),
    ("rx_jumbo", "rx-jumbo", "RX Jumbo"),
    ("tx", "tx", "TX"),
];

/// Salt's names for coalescing whose option is not simply the same with dashes. The first is as
/// misspelt as there.
const COALESCING: [(&str, &str); 2] =
    [("rx_frames_irg", "rx-frames-irq"), ("sample_interval", "sample-interval")];

fn ran(cx: &Cx, words: &[&str], query: bool) -> Result<Ran> {
    let words = std::iter::once("ethtool").chain(words.iter().copied());
    plain(cx, words, Options { query, ignore_retcode: true, ..Options::default() })
}

/// What the program prints of one kind of settings, if the interface has them.
fn told(cx: &Cx, option: &str, interface: &str) -> Result<Option<String>> {
    let ran = ran(cx, &[option, interface], true)?;
    Ok(ran.ok().then_some(ran.stdout))
}

/// `name: value` of each line.
fn values(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim(), value.trim())).filter(|(_, value)| !value.is_empty())
    })
}

/// A number; what the interface does not have is 0 there.
fn number(text: &str) -> i64 {
    text.parse().unwrap_or(0)
}

fn rings(text: &str) -> Dict {
    let ret = Dict::new();
    let (most, now) = text.split_once("Current hardware settings").unwrap_or(("", text));
    for (part, suffix) in [(now, ""), (most, "_max")] {
        for (name, _, shown) in RINGS {
            let found = values(part).find(|(own, _)| *own == shown);
            ret.insert(format!("{name}{suffix}"), number(found.map_or("", |(_, value)| value)));
        }
    }
    ret
}

fn coalescing(text: &str) -> Dict {
    let ret = Dict::new();
    for line in text.lines() {
        // "Adaptive RX: off  TX: off"
        if let Some(rest) = line.strip_prefix("Adaptive RX:") {
            let (rx, tx) = rest.split_once("TX:").unwrap_or((rest, ""));
            ret.insert("adaptive_rx", i64::from(rx.trim() == "on"));
            ret.insert("adaptive_tx", i64::from(tx.trim() == "on"));
        } else if let Some((name, value)) = values(line).next()
            && name != "Coalesce parameters for"
        {
            let name = name.to_lowercase();
            let own = COALESCING.iter().find(|(_, option)| *option == name);
            let own = own.map_or_else(|| name.replace('-', "_"), |(own, _)| (*own).to_owned());
            ret.insert(own, number(value));
        }
    }
    ret
}

/// Return the sizes of an interface's rings, and how large they can be.
///
/// ```console
/// $ salt '*' ethtool.show_ring eth0
/// ```
#[function]
pub fn show_ring(
    cx: &Cx,
    /// The interface.
    devname: String,
) -> Result<Value> {
    Ok(told(cx, "-g", &devname)?.map_or_else(|| "Not supported".into(), |text| rings(&text).into()))
}

/// Return how an interface gathers interrupts.
///
/// ```console
/// $ salt '*' ethtool.show_coalesce eth0
/// ```
#[function]
pub fn show_coalesce(
    cx: &Cx,
    /// The interface.
    devname: String,
) -> Result<Value> {
    let text = told(cx, "-c", &devname)?;
    Ok(text.map_or_else(|| "Not supported".into(), |text| coalescing(&text).into()))
}

/// Return the driver of an interface and where it is.
///
/// ```console
/// $ salt '*' ethtool.show_driver eth0
/// ```
#[function]
pub fn show_driver(
    cx: &Cx,
    /// The interface.
    devname: String,
) -> Result<Value> {
    let Some(text) = told(cx, "-i", &devname)? else { return Ok("Not implemented".into()) };
    let find = |wanted: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(wanted)?.strip_prefix(':'));
        found.unwrap_or_default().trim().to_owned()
    };
    Ok(entries! { "driver" => find("driver"), "bus_info" => find("bus-info") }.into())
}

/// Sets those of the options that differ; the program's option of each by its name here.
fn set(
    cx: &Cx,
    devname: &str,
    switch: &str,
    current: &Dict,
    kwargs: &Dict,
    option: impl Fn(&str) -> Option<String>,
) -> Result<bool> {
    let mut words = vec![switch.to_owned(), devname.to_owned()];
    for (name, value) in kwargs {
        let name = name.to_str();
        let (Some(option), Some(own)) = (option(&name), current.get(name.as_str())) else {
            continue;
        };
        if own != value {
            let shown = match (name.starts_with("adaptive_"), value.truthy()) {
                (true, true) if value != *"off" => "on".to_owned(),
                (true, _) => "off".to_owned(),
                _ => value.to_string(),
            };
            words.extend([option, shown]);
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(words.len() == 2 || ran(cx, &words, false)?.ok())
}

/// Set the sizes of an interface's rings.
///
/// ```console
/// $ salt '*' ethtool.set_ring eth0 rx=1024 tx=1024
/// ```
#[function]
pub fn set_ring(
    cx: &Cx,
    /// The interface.
    devname: String,
    /// `rx`, `rx_mini`, `rx_jumbo`, `tx`.
    kwargs: Rest,
) -> Result<Value> {
    let Some(text) = told(cx, "-g", &devname)? else { return Ok("Not supported".into()) };
    let option = |name: &str| {
        let ring = RINGS.iter().find(|(own, ..)| *own == name);
        ring.map(|(_, option, _)| (*option).to_owned())
    };
    if !set(cx, &devname, "-G", &rings(&text), &kwargs.kwargs, option)? {
        return Ok("Invalid arguments".into());
    }
    show_ring(cx, devname)
}

/// Set how an interface gathers interrupts.
///
/// ```console
/// $ salt '*' ethtool.set_coalesce eth0 adaptive_rx=on rx_usecs=30
/// ```
#[function]
pub fn set_coalesce(
    cx: &Cx,
    /// The interface.
    devname: String,
    /// `adaptive_rx`, `rx_usecs`, `tx_frames` …
    kwargs: Rest,
) -> Result<Value> {
    let Some(text) = told(cx, "-c", &devname)? else { return Ok("Not supported".into()) };
    let option = |name: &str| {
        let known = COALESCING.iter().find(|(own, _)| *own == name);
        Some(known.map_or_else(|| name.replace('_', "-"), |(_, option)| (*option).to_owned()))
    };
    if !set(cx, &devname, "-C", &coalescing(&text), &kwargs.kwargs, option)? {
        return Ok("Invalid arguments".into());
    }
    show_coalesce(cx, devname)
}

/// Return what work an interface takes over.
///
/// ```console
/// $ salt '*' ethtool.show_offload eth0
/// ```
#[function]
pub fn show_offload(
    cx: &Cx,
    /// The interface.
    devname: String,
) -> Result<Dict> {
    let text = told(cx, "-k", &devname)?.unwrap_or_default();
    let find = |wanted: &str| {
        let found = values(&text).find(|(own, _)| *own == wanted);
        let word = found.and_then(|(_, value)| value.split_whitespace().next());
        word.unwrap_or("not supported").to_owned()
    };
    Ok(entries! {
        "scatter_gather" => find("scatter-gather"),
        "tcp_segmentation_offload" => find("tcp-segmentation-offload"),
        "udp_fragmentation_offload" => find("udp-fragmentation-offload"),
        "generic_segmentation_offload" => find("generic-segmentation-offload"),
    })
}

/// Let an interface cut packets of TCP by itself, or not.
///
/// ```console
/// $ salt '*' ethtool.set_offload eth0 tcp_segmentation_offload=on
/// ```
#[function]
pub fn set_offload(
    cx: &Cx,
    /// The interface.
    devname: String,
    /// `tcp_segmentation_offload`.
    kwargs: Rest,
) -> Result<Value> {
    if let Some(value) = kwargs.kwargs.get("tcp_segmentation_offload") {
        let word = if value == *"on" { "on" } else { "off" };
        if !ran(cx, &["-K", &devname, "tso", word], false)?.ok() {
            return Ok("Not supported".into());
        }
    }
    Ok(show_offload(cx, devname)?.into())
}

/// The lines the program prints; what it cannot do is an error.
fn lines(cx: &Cx, words: &[&str], query: bool) -> Result<Vec<String>> {
    let ran = ran(cx, words, query)?;
    let text = if ran.stdout.is_empty() { &ran.stderr } else { &ran.stdout };
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match lines.first() {
        Some(first) if first.starts_with("Cannot") => Err(Error::failed(first)),
        _ => Ok(lines),
    }
}

/// The options the program takes, with on and off for yes and no.
fn valid(known: &[&str], kwargs: &Dict) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for (name, value) in kwargs {
        let name = name.to_str().to_lowercase();
        if known.contains(&name.as_str()) {
            let value = match value {
                Value::Bool(true) => "on".to_owned(),
                Value::Bool(false) => "off".to_owned(),
                other => other.to_string(),
            };
            words.extend([name, value]);
        }
    }
    if words.is_empty() {
        let known = Value::list(known.iter().copied());
        return Err(Error::failed(format!("None of the valid parameters were provided: {known}")));
    }
    Ok(words)
}

fn changed(
    cx: &Cx,
    switch: &str,
    devname: &str,
    known: &[&str],
    kwargs: &Dict,
) -> Result<Vec<String>> {
    let options = valid(known, kwargs)?;
    let words = [switch, devname].into_iter().chain(options.iter().map(String::as_str));
    lines(cx, &words.collect::<Vec<_>>(), false)
}

/// Return whether an interface may ask the other side to wait.
///
/// ```console
/// $ salt '*' ethtool.show_pause eth0
/// ```
#[function]
pub fn show_pause(
    cx: &Cx,
    /// The interface.
    devname: String,
) -> Result<Dict> {
    let lines = lines(cx, &["-a", &devname], true)?;
    let pairs = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    Ok(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim() == "on")).collect())
}

/// Set whether an interface may ask the other side to wait.
///
/// ```console
/// $ salt '*' ethtool.set_pause eth0 autoneg=off rx=off tx=off
/// ```
#[function]
pub fn set_pause(
    cx: &Cx,
    /// The interface.
    devname: String,
    /// `autoneg`, `rx`, `tx`.
    kwargs: Rest,
) -> Result<Value> {
    let said = changed(cx, "-A", &devname, &["autoneg", "rx", "tx"], &kwargs.kwargs)?;
    Ok(if said.is_empty() { true.into() } else { Value::list(said) })
}

/// Return the features of an interface: whether each is on, and whether that can be changed.
///
/// ```console
/// $ salt '*' ethtool.show_features eth0
/// ```
#[function]
pub fn show_features(
    cx: &Cx,
    /// The interface.
    devname: String,
) -> Result<Dict> {
    let lines = lines(cx, &["-k", &devname], true)?;
    let pairs = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    let feature = |(name, value): (&str, &str)| {
        let fixed = value.contains("fixed");
        let word = if fixed { value.split_whitespace().next().unwrap_or("") } else { value.trim() };
        (name.trim().to_owned(), Value::Dict(entries! { "on" => word == "on", "fixed" => fixed }))
    };
    Ok(pairs.map(feature).collect())
}

/// Set features of an interface.
///
/// ```console
/// $ salt '*' ethtool.set_feature eth0 sg=off
/// ```
#[function]
pub fn set_feature(
    cx: &Cx,
    /// The interface.
    devname: String,
    /// `rx`, `tx`, `sg`, `tso`, `ufo`, `gso`, `gro`, `lro`, `rxvlan`, `txvlan`, `ntuple`, `rxhash`.
    kwargs: Rest,
) -> Result<Value> {
    let known = [
        "rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro", "rxvlan", "txvlan", "ntuple", "rxhash",
    ];
    let said = changed(cx, "-K", &devname, &known, &kwargs.kwargs)?;
    Ok(if said.is_empty() { true.into() } else { said.join("\n").into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_value::json;

    #[test]
    fn sizes_of_rings() {
        let text = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\n\
                    RX Jumbo:\tn/a\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\n\
                    RX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t512\n";
        let expected = r#"{"rx": 256, "rx_mini": 0, "rx_jumbo": 0, "tx": 512, "rx_max": 4096,
            "rx_mini_max": 0, "rx_jumbo_max": 0, "tx_max": 4096}"#;
        assert_eq!(Value::Dict(rings(text)), json::from_str(expected).unwrap());
    }

    #[test]
    fn interrupts() {
        let text = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: on\n\
                    stats-block-usecs:\t0\nsample-interval:\t5\nrx-usecs:\t3\nrx-frames-irq:\t7\n";
        let expected = r#"{"adaptive_rx": 0, "adaptive_tx": 1, "stats_block_usecs": 0,
            "sample_interval": 5, "rx_usecs": 3, "rx_frames_irg": 7}"#;
        assert_eq!(Value::Dict(coalescing(text)), json::from_str(expected).unwrap());
    }
}
