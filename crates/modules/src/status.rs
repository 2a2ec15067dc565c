//! `status`: how the machine is doing.
//!
//! Everything is read from `/proc`, with Salt's names for the fields; numbers are numbers where Salt's
//! are, and texts where Salt's are.

use std::{path::Path, time::UNIX_EPOCH};

use halite_spec::{Call, Command, Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, List, Value, dict};

use crate::ps;

module! {
    /// How the machine is doing.
    "status": uptime, loadavg, cpustats, meminfo, cpuinfo, diskstats, diskusage, vmstats, nproc,
    netstats, netdev, w, procs, pid, version, time, master, ping_master, proxy_reconnect, custom,
    all_status,
}

/// A whole number, or the text.
fn number(text: &str) -> Value {
    let int = text.parse::<i64>().ok().map(Value::from);
    let float = || text.parse::<f64>().ok().map(Value::from);
    int.or_else(float).unwrap_or_else(|| text.into())
}

fn proc(cx: &Cx, name: &str) -> Result<String> {
    Ok(cx.host.read_text_if_there(&Path::new("/proc").join(name))?.unwrap_or_default())
}

/// Seconds since 1970.
pub fn now(cx: &Cx) -> f64 {
    cx.host.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Formats a time of the machine's zone as `strftime` does.
pub fn strftime(cx: &Cx, seconds: f64, format: &str) -> Result<String> {
    let zone = jiff::tz::TimeZone::system();
    let stamp = jiff::Timestamp::from_microsecond((seconds * 1e6).round() as i64)
        .map_err(|error| Error::failed(error.to_string()))?;
    let _ = cx;
    jiff::fmt::strtime::format(format, &stamp.to_zoned(zone))
        .map_err(|error| Error::failed(error.to_string()))
}

/// Return since when the machine runs, and who is logged in.
///
/// ```console
/// $ salt web1 status.uptime
/// ```
#[function]
pub fn uptime(cx: &Cx) -> Result<Dict> {
    let text = proc(cx, "uptime")?;
    let seconds: f64 =
        text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let whole = seconds as i64;
    let since = now(cx) - seconds;
    let ret = Dict::new();
    ret.insert("seconds", whole);
    let zone = jiff::tz::TimeZone::UTC;
    let iso = jiff::Timestamp::from_microsecond((since * 1e6) as i64)
        .map(|stamp| stamp.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string())
        .map_err(|error| Error::failed(error.to_string()))?;
    ret.insert("since_iso", iso);
    ret.insert("since_t", since as i64);
    ret.insert("days", whole / 86400);
    let rest = whole % 86400;
    ret.insert("time", format!("{}:{}", rest / 3600, rest % 3600 / 60));
    if cx.host.which("who").is_some() {
        let text = cx.host.run(&Command::line(["who", "-s"]).query())?.stdout_text();
        ret.insert("users", text.trim_end().split('\n').count());
    }
    Ok(ret)
}

/// Return the load of the last 1, 5 and 15 minutes.
///
/// ```console
/// $ salt web1 status.loadavg
/// ```
#[function]
pub fn loadavg(cx: &Cx) -> Result<Dict> {
    let text = proc(cx, "loadavg")?;
    let ret = Dict::new();
    for (name, word) in ["1-min", "5-min", "15-min"].into_iter().zip(text.split_whitespace()) {
        ret.insert(name, word.parse::<f64>().unwrap_or(0.0));
    }
    Ok(ret)
}

/// Return the counters of the processors.
///
/// ```console
/// $ salt web1 status.cpustats
/// ```
#[function]
pub fn cpustats(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for line in proc(cx, "stat")?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((name, values)) = words.split_first() else { continue };
        let value = |at: usize| values.get(at).map(|word| number(word)).unwrap_or_default();
        match *name {
            "cpu" => {
                let names = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
                let cpu = Dict::new();
                for (at, name) in names.into_iter().enumerate() {
                    cpu.insert(name, value(at));
                }
                ret.insert("cpu", cpu);
            }
            "intr" | "softirq" => {
                let each = Value::list(values.iter().skip(1).map(|word| number(word)));
                let list = if *name == "intr" { "irqs" } else { "softirqs" };
                ret.insert(*name, dict! { "total" => value(0), list => each });
            }
            _ => {
                ret.insert(*name, value(0));
            }
        }
    }
    Ok(ret)
}

/// Return what the kernel says about memory.
///
/// ```console
/// $ salt web1 status.meminfo
/// ```
#[function]
pub fn meminfo(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for (name, rest) in proc(cx, "meminfo")?.lines().filter_map(|line| line.split_once(':')) {
        let mut words = rest.split_whitespace();
        let own = Dict::new();
        own.insert("value", words.next().unwrap_or_default());
        if let Some(unit) = words.next() {
            own.insert("unit", unit);
        }
        ret.insert(name, own);
    }
    Ok(ret)
}

/// Return what the kernel says about the last processor.
///
/// ```console
/// $ salt web1 status.cpuinfo
/// ```
#[function]
pub fn cpuinfo(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for (name, value) in proc(cx, "cpuinfo")?.lines().filter_map(|line| line.split_once(':')) {
        let (name, value) = (name.trim(), value.trim());
        if name == "flags" {
            ret.insert(name, Value::list(value.split_whitespace()));
        } else {
            ret.insert(name, value);
        }
    }
    Ok(ret)
}

/// Return the counters of block devices.
///
/// ```console
/// $ salt web1 status.diskstats
/// ```
#[function]
pub fn diskstats(cx: &Cx) -> Result<Dict> {
    const FIELDS: [&str; 14] = [
        "major",
        "minor",
        "device",
        "reads_issued",
        "reads_merged",
        "sectors_read",
        "ms_spent_reading",
        "writes_completed",
        "writes_merged",
        "sectors_written",
        "ms_spent_writing",
        "io_in_progress",
        "ms_spent_in_io",
        "weighted_ms_spent_in_io",
    ];
    let ret = Dict::new();
    for line in proc(cx, "diskstats")?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(device) = words.get(2) else { continue };
        let own = Dict::new();
        for (field, word) in FIELDS.iter().zip(&words) {
            own.insert(*field, number(word));
        }
        ret.insert(*device, own);
    }
    Ok(ret)
}

/// Return the space of file systems; those of a kind (`ext?`), or at a path.
///
/// ```console
/// $ salt '*' status.diskusage ext? /home
/// ```
#[function]
pub fn diskusage(
    cx: &Cx,
    /// Kinds of file systems and mount points; all unless given.
    #[arg(by_position)]
    args: Rest,
) -> Result<Dict> {
    let wanted: Vec<String> = args.args.iter().map(Value::to_string).collect();
    let ret = Dict::new();
    for line in proc(cx, "mounts")?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, path, kind, ..] = words.as_slice() else { continue };
        let fits = wanted.is_empty()
            || wanted.iter().any(|own| match own.starts_with('/') {
                true => own == path,
                false => halite_target::fnmatch::fnmatch(kind, own),
            });
        if !fits {
            continue;
        }
        if let Ok(space) = cx.host.space(Path::new(path)) {
            ret.insert(*path, dict! { "available" => space.available, "total" => space.total });
        }
    }
    Ok(ret)
}

/// Return the counters of virtual memory.
///
/// ```console
/// $ salt web1 status.vmstats
/// ```
#[function]
pub fn vmstats(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for (name, value) in proc(cx, "vmstat")?.lines().filter_map(|line| line.split_once(' ')) {
        ret.insert(name, number(value.trim()));
    }
    Ok(ret)
}

/// Return the number of processors.
///
/// ```console
/// $ salt web1 status.nproc
/// ```
#[function]
pub fn nproc(cx: &Cx) -> Result<i64> {
    let text = cx.host.run(&Command::line(["nproc"]).query())?.stdout_text();
    Ok(text.trim().parse().unwrap_or(0))
}

/// Return the counters of the network protocols.
///
/// ```console
/// $ salt web1 status.netstats
/// ```
#[function]
pub fn netstats(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    let text = proc(cx, "net/netstat")?;
    let lines: Vec<&str> = text.lines().collect();
    // Names and values come as pairs of lines that begin alike.
    for pair in lines.chunks(2) {
        let [names, values] = pair else { continue };
        let Some((head, names)) = names.split_once(": ") else { continue };
        let values = values.split_once(": ").map_or("", |(_, values)| values);
        let own = Dict::new();
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            own.insert(name, number(value));
        }
        ret.insert(head, own);
    }
    Ok(ret)
}

/// Return the counters of network interfaces.
///
/// ```console
/// $ salt web1 status.netdev
/// ```
#[function]
pub fn netdev(cx: &Cx) -> Result<Dict> {
    const FIELDS: [&str; 16] = [
        "rx_bytes",
        "rx_packets",
        "rx_errs",
        "rx_drop",
        "rx_fifo",
        "rx_frame",
        "rx_compressed",
        "rx_multicast",
        "tx_bytes",
        "tx_packets",
        "tx_errs",
        "tx_drop",
        "tx_fifo",
        "tx_colls",
        "tx_carrier",
        "tx_compressed",
    ];
    let ret = Dict::new();
    for (name, values) in proc(cx, "net/dev")?.lines().filter_map(|line| line.split_once(':')) {
        let mut own: Vec<(&str, Value)> =
            FIELDS.into_iter().zip(values.split_whitespace().map(number)).collect();
        own.push(("iface", name.trim().into()));
        own.sort_by_key(|(field, _)| *field);
        ret.insert(name.trim(), own.into_iter().collect::<Dict>());
    }
    Ok(ret)
}

/// Return who is logged in.
///
/// ```console
/// $ salt web1 status.w
/// ```
#[function]
pub fn w(cx: &Cx) -> Result<List> {
    let ret = List::new();
    let text = cx.host.run(&Command::line(["w", "-fh"]).query())?.stdout_text();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [user, tty, login, idle, jcpu, pcpu, what @ ..] = words.as_slice() else { continue };
        ret.push(dict! {
            "idle" => *idle, "jcpu" => *jcpu, "login" => *login, "pcpu" => *pcpu, "tty" => *tty,
            "user" => *user, "what" => what.join(" "),
        });
    }
    Ok(ret)
}

/// Return the processes: number → user and command line.
///
/// ```console
/// $ salt web1 status.procs
/// ```
#[function]
pub fn procs(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for process in ps::processes(cx)? {
        let own = dict! { "user" => ps::user_name(cx, process.uid), "cmd" => process.shown() };
        ret.insert(process.pid.to_string(), own);
    }
    Ok(ret)
}

/// Return the numbers of the processes with this in their command line, one a line.
///
/// ```console
/// $ salt '*' status.pid mysql
/// ```
#[function]
pub fn pid(
    cx: &Cx,
    /// What to look for.
    sig: String,
) -> Result<String> {
    let own = ps::own_and_above(cx);
    let found = ps::processes(cx)?
        .into_iter()
        .filter(|process| process.shown().contains(&sig) && !own.contains(&process.pid));
    Ok(found.map(|process| process.pid.to_string()).collect::<Vec<_>>().join("\n"))
}

/// Return the version of the kernel.
///
/// ```console
/// $ salt web1 status.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    Ok(proc(cx, "version")?.trim().to_owned())
}

/// Return the time of the machine.
///
/// ```console
/// $ salt web1 status.time
/// ```
#[function]
pub fn time(
    cx: &Cx,
    /// The form, as of `strftime`.
    #[default("%A, %d. %B %Y %I:%M%p".to_owned())]
    format: String,
) -> Result<String> {
    strftime(cx, now(cx), &format)
}

/// Tell whether the master is connected; without a master, nothing.
///
/// ```console
/// $ salt web1 status.master
/// ```
#[function]
pub fn master(
    cx: &Cx,
    /// The master.
    master: Option<String>,
    /// What is expected.
    #[default(true)]
    connected: bool,
) -> Result<Option<bool>> {
    if cx.opt_str("file_client").as_deref() == Some("local") {
        return Ok(None);
    }
    let _ = master;
    let answers = cx.runtime.ask_master(cx, dict! { "cmd" => "ping" }).is_ok();
    Ok(Some(answers == connected))
}

/// Tell whether a master answers on its port.
///
/// ```console
/// $ salt web1 status.ping_master salt1
/// ```
#[function]
pub fn ping_master(
    cx: &Cx,
    /// The master; the configured one unless given.
    #[arg(required)]
    master: Option<String>,
) -> Result<bool> {
    let host = match master.filter(|master| !master.is_empty()) {
        Some(master) => master,
        None => cx.opt_str("master").map_or_else(|| "salt".to_owned(), Into::into),
    };
    let port = cx.opt("master_port").or_else(|| cx.opt("ret_port")).and_then(|port| port.as_int());
    let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(4506);
    Ok(cx.host.connect(&host, port, false, std::time::Duration::from_secs(5)).is_ok())
}

/// Connect a proxy minion with its device again if the connection was lost; False when this is none.
///
/// The proxy module is asked by its function `alive`; if that says no, `shutdown` and `init` follow.
/// It is what the scheduled job `__proxy_keepalive` does every minute.
///
/// ```console
/// $ salt switch1 status.proxy_reconnect netmiko
/// ```
#[function]
pub fn proxy_reconnect(
    cx: &Cx,
    /// The proxy module.
    proxy_name: String,
    /// The options; those of the minion if absent.
    opts: Option<Value>,
) -> Result<bool> {
    let opts = opts.filter(Value::truthy).unwrap_or_else(|| (&cx.opts).into());
    let call = |function: &str| {
        let call = Call { args: vec![opts.clone()], ..Call::default() };
        let name = format!("{proxy_name}.{function}");
        cx.runtime.call_extension(cx, "proxy", &name, call)
    };
    if !cx.is_proxy() {
        return Ok(false);
    }
    let Some(alive) = call("alive")? else { return Ok(false) };
    if !alive.truthy() {
        tracing::info!("{} is down, reconnecting", cx.id());
        call("shutdown")?;
        call("init")?;
    }
    Ok(true)
}

/// Return what the option `status.custom` asks for: function → fields.
///
/// ```console
/// $ salt web1 status.custom
/// ```
#[function]
pub fn custom(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    for (key, fields) in &cx.opts {
        let key = key.to_string();
        let Some(function) =
            key.strip_prefix("status.").and_then(|rest| rest.strip_suffix(".custom"))
        else {
            continue;
        };
        let answer = cx.call(&format!("status.{function}"), halite_spec::Call::default())?;
        for field in fields.items_of_sequence().unwrap_or_default() {
            let field = field.to_string();
            ret.insert(format!("{function}.{field}"), answer.get(&field).unwrap_or_default());
        }
    }
    Ok(ret)
}

/// Return everything at once.
///
/// ```console
/// $ salt web1 status.all_status
/// ```
#[function]
pub fn all_status(cx: &Cx) -> Result<Dict> {
    let ret = Dict::new();
    ret.insert("cpuinfo", cpuinfo(cx)?);
    ret.insert("cpustats", cpustats(cx)?);
    ret.insert("diskstats", diskstats(cx)?);
    ret.insert("diskusage", diskusage(cx, Rest::default())?);
    ret.insert("loadavg", loadavg(cx)?);
    ret.insert("meminfo", meminfo(cx)?);
    ret.insert("netdev", netdev(cx)?);
    ret.insert("netstats", netstats(cx)?);
    ret.insert("uptime", uptime(cx)?);
    ret.insert("vmstats", vmstats(cx)?);
    ret.insert("w", w(cx)?);
    Ok(ret)
}
