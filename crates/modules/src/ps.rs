//! `ps`: processes, memory, disks and network, with the names of Python's psutil.
//!
//! Read from `/proc`; nothing is started for it. A process may end while it is looked at: what cannot
//! be read of it is left out, as psutil does.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use halite_pyregex::{Flags, PyRegex};
use halite_spec::{Command, Cx, Error, Result, function, module};
use halite_value::{Dict, List, Value, dict};

use crate::{cmd, status::strftime};

module! {
    /// Processes, memory, disks and network.
    "ps": top, get_pid_list, proc_info, kill_pid, pkill, pgrep, cpu_percent, cpu_times,
    virtual_memory, swap_memory, disk_partitions, disk_usage, disk_partition_usage,
    total_physical_memory, num_cpus, boot_time, network_io_counters, disk_io_counters, get_users,
    lsof, netstat, ss, psaux, status,
}

/// Ticks of the kernel's process clock in a second; fixed on Linux for user programs.
const TICKS: f64 = 100.0;
const PAGE: u64 = 4096;

/// A process, as its files in `/proc` show it.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub pid: u32,
    pub name: String,
    pub state: char,
    pub ppid: u32,
    pub uid: u32,
    pub cmdline: Vec<String>,
    /// Seconds: user, system, children's user, children's system, waiting for disks.
    pub times: [f64; 5],
    pub nice: i64,
    pub threads: i64,
    /// Seconds since the machine was started.
    pub started: f64,
    pub cpu: i64,
}

impl Process {
    /// The command line, or the name in brackets.
    pub fn shown(&self) -> String {
        if self.cmdline.is_empty() { format!("[{}]", self.name) } else { self.cmdline.join(" ") }
    }

    fn status(&self) -> &'static str {
        match self.state {
            'R' => "running",
            'S' => "sleeping",
            'D' => "disk-sleep",
            'T' => "stopped",
            't' => "tracing-stop",
            'Z' => "zombie",
            'X' | 'x' => "dead",
            'K' => "wake-kill",
            'W' => "waking",
            'I' => "idle",
            'P' => "parked",
            _ => "?",
        }
    }

    /// psutil's name: the kernel's is cut at 15 characters, the program's is not.
    fn long_name(&self) -> String {
        let program = self.cmdline.first().and_then(|path| path.rsplit('/').next());
        match program {
            Some(program) if self.name.len() >= 15 && program.starts_with(&self.name) => {
                program.to_owned()
            }
            _ => self.name.clone(),
        }
    }
}

fn folder(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

fn proc_text(cx: &Cx, name: &str) -> Result<String> {
    Ok(cx.host.read_text_if_there(&Path::new("/proc").join(name))?.unwrap_or_default())
}

/// Reads one process; nothing when it is gone.
pub fn process(cx: &Cx, pid: u32) -> Option<Process> {
    let folder = folder(pid);
    let stat = cx.host.read_text(&folder.join("stat")).ok()?;
    // The name stands in brackets and may hold anything, brackets too.
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(').map(|(_, name)| name.to_owned())?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or("0");
    let int = |at: usize| word(at).parse::<i64>().unwrap_or(0);
    let seconds = |at: usize| int(at) as f64 / TICKS;
    let cmdline = cx.host.read(&folder.join("cmdline")).unwrap_or_default();
    let cmdline = String::from_utf8_lossy(&cmdline).into_owned();
    let cmdline = cmdline.trim_end_matches('\0');
    let cmdline: Vec<String> = match cmdline {
        "" => Vec::new(),
        line => line.split('\0').map(str::to_owned).collect(),
    };
    let uid = cx.host.stat(&folder, true).map_or(0, |stat| stat.uid);
    Some(Process {
        pid,
        name,
        state: word(0).chars().next().unwrap_or('?'),
        ppid: int(1) as u32,
        uid,
        cmdline,
        times: [seconds(11), seconds(12), seconds(13), seconds(14), seconds(39)],
        nice: int(16),
        threads: int(17),
        started: seconds(19),
        cpu: int(36),
    })
}

/// Every process, by number.
pub fn processes(cx: &Cx) -> Result<Vec<Process>> {
    Ok(pids(cx)?.into_iter().filter_map(|pid| process(cx, pid)).collect())
}

fn pids(cx: &Cx) -> Result<Vec<u32>> {
    let names = cx.host.read_dir(Path::new("/proc"))?;
    let mut pids: Vec<u32> =
        names.iter().filter_map(|name| name.to_string_lossy().parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

pub fn user_name(cx: &Cx, uid: u32) -> String {
    let user = cx.host.user_with_id(uid).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

/// This process and those that started it: whoever looks for processes does not mean them.
pub fn own_and_above(cx: &Cx) -> Vec<u32> {
    let mut found = Vec::new();
    let link = cx.host.read_link(Path::new("/proc/self")).ok();
    let mut pid = link.and_then(|link| link.to_string_lossy().parse::<u32>().ok());
    while let Some(own) = pid.filter(|own| *own > 1 && !found.contains(own)) {
        found.push(own);
        pid = process(cx, own).map(|process| process.ppid);
    }
    found
}

/// When the machine was started, in seconds since 1970.
fn started(cx: &Cx) -> Result<i64> {
    let text = proc_text(cx, "stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "));
    line.and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| Error::failed("/proc/stat does not say when the machine was started"))
}

/// One digit after the point, as psutil rounds.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn share(used: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { rounded(used as f64 / total as f64 * 100.0) }
}

/// `/proc/meminfo` in bytes.
fn memory(cx: &Cx) -> Result<impl Fn(&str) -> u64> {
    let text = proc_text(cx, "meminfo")?;
    Ok(move |name: &str| {
        let line = text.lines().find_map(|line| {
            line.split_once(':').filter(|(own, _)| *own == name).map(|(_, rest)| rest.to_owned())
        });
        let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kb.unwrap_or(0) * 1024
    })
}

/// A line of processor times, in seconds.
fn cpu_line(line: &str) -> Dict {
    let names = [
        "user",
        "nice",
        "system",
        "idle",
        "iowait",
        "irq",
        "softirq",
        "steal",
        "guest",
        "guest_nice",
    ];
    let ret = Dict::new();
    for (name, word) in names.into_iter().zip(line.split_whitespace().skip(1)) {
        ret.insert(name, word.parse::<f64>().unwrap_or(0.0) / TICKS);
    }
    ret
}

fn cpu_lines(cx: &Cx) -> Result<Vec<String>> {
    let text = proc_text(cx, "stat")?;
    Ok(text.lines().filter(|line| line.starts_with("cpu")).map(str::to_owned).collect())
}

/// Busy and all ticks of a line.
fn ticks(line: &str) -> (f64, f64) {
    let words: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let idle = words.get(3).unwrap_or(&0.0) + words.get(4).unwrap_or(&0.0);
    let all: f64 = words.iter().sum();
    (all - idle, all)
}

struct Mount {
    device: String,
    point: String,
    kind: String,
    options: String,
}

/// Mounted file systems; only those on real devices unless all are wanted.
fn mounts(cx: &Cx, all: bool) -> Result<Vec<Mount>> {
    let known = proc_text(cx, "filesystems")?;
    let real: Vec<&str> = known
        .lines()
        .filter(|line| !line.starts_with("nodev") || line.ends_with("\tzfs"))
        .map(str::trim)
        .collect();
    let mut mounts = Vec::new();
    for line in proc_text(cx, "mounts")?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, point, kind, options, ..] = words.as_slice() else { continue };
        if !all && (device.is_empty() || *device == "none" || !real.contains(kind)) {
            continue;
        }
        let plain = |text: &str| text.replace("\\040", " ");
        mounts.push(Mount {
            device: plain(device),
            point: plain(point),
            kind: (*kind).to_owned(),
            options: (*options).to_owned(),
        });
    }
    Ok(mounts)
}

fn usage_of(cx: &Cx, path: &str) -> Result<Dict> {
    let space = cx.host.space(Path::new(path))?;
    let used = space.total.saturating_sub(space.free);
    let ret = Dict::new();
    ret.insert("total", space.total);
    ret.insert("used", used);
    ret.insert("free", space.available);
    ret.insert("percent", share(used, used + space.available));
    Ok(ret)
}

/// The processes that fit; without a regular expression by equal name or by part of the line.
fn found(
    cx: &Cx,
    pattern: &str,
    user: Option<&str>,
    full: bool,
    is_regex: bool,
) -> Result<Vec<u32>> {
    let regex = match is_regex {
        true => Some(
            PyRegex::cached(pattern, Flags::default())
                .map_err(|error| Error::failed(error.to_string()))?,
        ),
        false => None,
    };
    let mut pids = Vec::new();
    for process in processes(cx)? {
        let text = if full { process.shown() } else { process.long_name() };
        let fits = match &regex {
            Some(regex) => {
                regex.is_match(&text).map_err(|error| Error::failed(error.to_string()))?
            }
            None => text.contains(pattern),
        };
        let theirs = user.is_none_or(|user| user_name(cx, process.uid) == user);
        if fits && theirs {
            pids.push(process.pid);
        }
    }
    Ok(pids)
}

/// The lines of a program's output that hold a word.
fn lines_with(cx: &Cx, words: &[&str], name: &str) -> Result<Vec<String>> {
    let text = cx.host.run(&Command::line(words.iter().copied()).query())?.stdout_text();
    let lines = text.lines().filter(|line| line.contains(name)).map(|line| line.trim().to_owned());
    Ok(lines.collect())
}

/// Return the processes that use the processors most, over a while.
///
/// ```console
/// $ salt web1 ps.top
/// ```
#[function]
pub fn top(
    cx: &Cx,
    /// How many.
    #[default(5)]
    num_processes: i64,
    /// Over how many seconds.
    #[default(3.0)]
    #[shown(3i64)]
    interval: f64,
) -> Result<Value> {
    let before = processes(cx)?;
    cx.sleep(Duration::try_from_secs_f64(interval).unwrap_or_default())?;
    let spent = |process: &Process| process.times[0] + process.times[1];
    let mut rows: Vec<(f64, Process)> = Vec::new();
    for old in before {
        if let Some(now) = process(cx, old.pid).filter(|now| now.started == old.started) {
            rows.push((spent(&now) - spent(&old), now));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let since = started(cx)? as f64;
    let rows = rows.into_iter().take(usize::try_from(num_processes).unwrap_or(0));
    Ok(Value::list(rows.map(|(_, process)| {
        let [user, system, children_user, children_system, iowait] = process.times;
        let cmd = match process.cmdline.is_empty() {
            true => vec![process.name.clone()],
            false => process.cmdline.clone(),
        };
        dict! {
            "cmd" => cmd, "user" => user_name(cx, process.uid), "status" => process.status(),
            "pid" => process.pid, "create_time" => since + process.started,
            "cpu" => dict! {
                "user" => user, "system" => system, "children_user" => children_user,
                "children_system" => children_system, "iowait" => iowait,
            },
            "mem" => memory_of(cx, process.pid),
        }
    })))
}

/// `/proc/<pid>/statm` in bytes, by psutil's names.
fn memory_of(cx: &Cx, pid: u32) -> Dict {
    let text = cx.host.read_text(&folder(pid).join("statm")).unwrap_or_default();
    let words: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let bytes = |at: usize| words.get(at).unwrap_or(&0) * PAGE;
    let ret = Dict::new();
    ret.insert("rss", bytes(1));
    ret.insert("vms", bytes(0));
    ret.insert("shared", bytes(2));
    ret.insert("text", bytes(3));
    ret.insert("lib", bytes(4));
    ret.insert("data", bytes(5));
    ret.insert("dirty", bytes(6));
    ret
}

/// Return the numbers of all processes.
///
/// ```console
/// $ salt web1 ps.get_pid_list
/// ```
#[function]
pub fn get_pid_list(cx: &Cx) -> Result<Value> {
    Ok(Value::list(pids(cx)?))
}

/// Return what is known of a process.
///
/// ```console
/// $ salt web1 ps.proc_info 4711
/// ```
#[function]
pub fn proc_info(
    cx: &Cx,
    /// The process.
    pid: i64,
    /// Only these.
    attrs: Option<Vec<String>>,
) -> Result<Dict> {
    let number = u32::try_from(pid).ok();
    let Some(process) = number.and_then(|pid| process(cx, pid)) else {
        return Err(Error::failed(format!("process no longer exists (pid={pid})")));
    };
    let since = started(cx)? as f64;
    let ret = Dict::new();
    ret.insert("cpu_times", Value::list(process.times));
    ret.insert("status", process.status());
    ret.insert("num_threads", process.threads);
    ret.insert("cpu_num", process.cpu);
    ret.insert("memory_info", Value::list(memory_of(cx, process.pid).values()));
    ret.insert("cmdline", process.cmdline.clone());
    ret.insert("ppid", process.ppid);
    ret.insert("create_time", since + process.started);
    ret.insert("username", user_name(cx, process.uid));
    ret.insert("name", process.long_name());
    ret.insert("nice", process.nice);
    ret.insert("pid", process.pid);
    let link = |name: &str| {
        let target = cx.host.read_link(&folder(process.pid).join(name)).ok();
        target.map(|path| path.display().to_string())
    };
    ret.insert("exe", link("exe"));
    ret.insert("cwd", link("cwd"));
    let files = cx.host.read_dir(&folder(process.pid).join("fd")).map(|names| names.len());
    ret.insert("num_fds", files.ok());
    if let Some(attrs) = attrs {
        let only = Dict::new();
        for name in attrs {
            let Some(value) = ret.get(name.as_str()) else {
                return Err(Error::failed(format!(
                    "invalid attr name {}",
                    Value::from(name).repr()
                )));
            };
            only.insert(name, value);
        }
        return Ok(only);
    }
    Ok(ret)
}

/// Send a signal to a process; False when there is none.
///
/// ```console
/// $ salt '*' ps.kill_pid 2000 signal=9
/// ```
#[function]
pub fn kill_pid(
    cx: &Cx,
    /// The process.
    pid: i64,
    /// The signal.
    #[default(15)]
    signal: i64,
) -> Result<bool> {
    let Ok(pid) = u32::try_from(pid) else { return Ok(false) };
    if process(cx, pid).is_none() {
        return Ok(false);
    }
    Ok(cx.host.kill(pid, i32::try_from(signal).unwrap_or(15)).is_ok())
}

/// Send a signal to all processes that fit; returns who was killed, or nothing.
///
/// ```console
/// $ salt '*' ps.pkill pattern signal=9
/// ```
#[function]
pub fn pkill(
    cx: &Cx,
    /// Part of the name.
    pattern: String,
    /// Only those of this user.
    user: Option<String>,
    /// The signal.
    #[default(15)]
    signal: i64,
    /// Look in the whole command line.
    #[default(false)]
    full: bool,
) -> Result<Option<Dict>> {
    let mut killed = Vec::new();
    let own = own_and_above(cx);
    for pid in found(cx, &pattern, user.as_deref(), full, false)? {
        if !own.contains(&pid) && cx.host.kill(pid, i32::try_from(signal).unwrap_or(15)).is_ok() {
            killed.push(pid);
        }
    }
    if killed.is_empty() {
        return Ok(None);
    }
    let ret = Dict::new();
    ret.insert("killed", Value::list(killed));
    Ok(Some(ret))
}

/// Return the numbers of the processes that fit, or nothing.
///
/// ```console
/// $ salt '*' ps.pgrep httpd
/// ```
#[function]
pub fn pgrep(
    cx: &Cx,
    /// Part of the name.
    pattern: String,
    /// Only those of this user.
    user: Option<String>,
    /// Look in the whole command line.
    #[default(false)]
    full: bool,
    /// It is a regular expression.
    #[default(false)]
    pattern_is_regex: bool,
) -> Result<Option<Value>> {
    let pids = found(cx, &pattern, user.as_deref(), full, pattern_is_regex)?;
    Ok(if pids.is_empty() { None } else { Some(Value::list(pids)) })
}

/// Return how busy the processors are.
///
/// ```console
/// $ salt web1 ps.cpu_percent
/// ```
#[function]
pub fn cpu_percent(
    cx: &Cx,
    /// Over how many seconds.
    #[default(0.1)]
    interval: f64,
    /// Each of them.
    #[default(false)]
    per_cpu: bool,
) -> Result<Value> {
    let before = cpu_lines(cx)?;
    cx.sleep(Duration::try_from_secs_f64(interval).unwrap_or_default())?;
    let mut shares = before.iter().zip(cpu_lines(cx)?).map(|(old, new)| {
        let ((busy_was, all_was), (busy, all)) = (ticks(old), ticks(&new));
        let all = all - all_was;
        if all > 0.0 { rounded(((busy - busy_was) / all * 100.0).clamp(0.0, 100.0)) } else { 0.0 }
    });
    let whole = shares.next().unwrap_or(0.0);
    Ok(if per_cpu { Value::list(shares) } else { whole.into() })
}

/// Return how the processors spent their time, in seconds.
///
/// ```console
/// $ salt web1 ps.cpu_times
/// ```
#[function]
pub fn cpu_times(
    cx: &Cx,
    /// Each of them.
    #[default(false)]
    per_cpu: bool,
) -> Result<Value> {
    let lines = cpu_lines(cx)?;
    let mut times = lines.iter().map(|line| cpu_line(line));
    let whole = times.next().unwrap_or_default();
    Ok(if per_cpu { Value::list(times) } else { whole.into() })
}

/// Return how memory is used, in bytes.
///
/// ```console
/// $ salt web1 ps.virtual_memory
/// ```
#[function]
pub fn virtual_memory(cx: &Cx) -> Result<Dict> {
    let of = memory(cx)?;
    let (total, available) = (of("MemTotal"), of("MemAvailable"));
    let ret = Dict::new();
    ret.insert("total", total);
    ret.insert("available", available);
    ret.insert("percent", share(total.saturating_sub(available), total));
    ret.insert("used", total.saturating_sub(available));
    ret.insert("free", of("MemFree"));
    ret.insert("active", of("Active"));
    ret.insert("inactive", of("Inactive"));
    ret.insert("buffers", of("Buffers"));
    ret.insert("cached", of("Cached") + of("SReclaimable"));
    ret.insert("shared", of("Shmem"));
    ret.insert("slab", of("Slab"));
    Ok(ret)
}

/// Return how swap space is used, in bytes.
///
/// ```console
/// $ salt web1 ps.swap_memory
/// ```
#[function]
pub fn swap_memory(cx: &Cx) -> Result<Dict> {
    let of = memory(cx)?;
    let (total, free) = (of("SwapTotal"), of("SwapFree"));
    let used = total.saturating_sub(free);
    let text = proc_text(cx, "vmstat")?;
    let pages = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0) * PAGE
    };
    let ret = Dict::new();
    ret.insert("total", total);
    ret.insert("used", used);
    ret.insert("free", free);
    ret.insert("percent", share(used, total));
    ret.insert("sin", pages("pswpin"));
    ret.insert("sout", pages("pswpout"));
    Ok(ret)
}

/// Return the mounted partitions.
///
/// ```console
/// $ salt web1 ps.disk_partitions
/// ```
#[function]
pub fn disk_partitions(
    cx: &Cx,
    /// Those on no device, too.
    #[default(false)]
    all: bool,
) -> Result<Value> {
    Ok(Value::list(mounts(cx, all)?.into_iter().map(|mount| {
        dict! {
            "device" => mount.device, "mountpoint" => mount.point, "fstype" => mount.kind,
            "opts" => mount.options,
        }
    })))
}

/// Return the space of the file system a path is on, in bytes.
///
/// ```console
/// $ salt web1 ps.disk_usage /srv
/// ```
#[function]
pub fn disk_usage(
    cx: &Cx,
    /// The path.
    path: String,
) -> Result<Dict> {
    usage_of(cx, &path)
}

/// Return the mounted partitions with their space.
///
/// ```console
/// $ salt web1 ps.disk_partition_usage
/// ```
#[function]
pub fn disk_partition_usage(
    cx: &Cx,
    /// Those on no device, too.
    #[default(false)]
    all: bool,
) -> Result<Value> {
    let ret = List::new();
    for mount in mounts(cx, all)? {
        let own = Dict::new();
        own.insert("device", mount.device.as_str());
        own.insert("mountpoint", mount.point.as_str());
        own.insert("fstype", mount.kind.as_str());
        own.insert("opts", mount.options.as_str());
        own.update(&usage_of(cx, &mount.point)?);
        ret.push(own);
    }
    Ok(ret.into())
}

/// Return how much memory there is, in bytes.
///
/// ```console
/// $ salt web1 ps.total_physical_memory
/// ```
#[function]
pub fn total_physical_memory(cx: &Cx) -> Result<u64> {
    Ok(memory(cx)?("MemTotal"))
}

/// Return the number of processors.
///
/// ```console
/// $ salt web1 ps.num_cpus
/// ```
#[function]
pub fn num_cpus(cx: &Cx) -> Result<usize> {
    Ok(cpu_lines(cx)?.len().saturating_sub(1))
}

/// Return when the machine was started, in seconds since 1970 or as a text.
///
/// ```console
/// $ salt '*' ps.boot_time "%Y-%m-%d"
/// ```
#[function]
pub fn boot_time(
    cx: &Cx,
    /// The form, as of `strftime`.
    time_format: Option<String>,
) -> Result<Value> {
    let since = started(cx)?;
    match time_format {
        Some(format) => strftime(cx, since as f64, &format).map(Value::from),
        None => Ok(since.into()),
    }
}

/// Return the counters of the network; of one interface, False if it is not there.
///
/// ```console
/// $ salt web1 ps.network_io_counters
/// ```
#[function]
pub fn network_io_counters(
    cx: &Cx,
    /// The interface.
    interface: Option<String>,
) -> Result<Value> {
    const FIELDS: [(&str, usize); 8] = [
        ("bytes_sent", 8),
        ("bytes_recv", 0),
        ("packets_sent", 9),
        ("packets_recv", 1),
        ("errin", 2),
        ("errout", 10),
        ("dropin", 3),
        ("dropout", 11),
    ];
    let text = proc_text(cx, "net/dev")?;
    let mut sums = [0u64; 8];
    let mut seen = false;
    for (name, values) in text.lines().filter_map(|line| line.split_once(':')) {
        if interface.as_deref().is_some_and(|wanted| wanted != name.trim()) {
            continue;
        }
        seen = true;
        let values: Vec<u64> =
            values.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        for (sum, (_, at)) in sums.iter_mut().zip(FIELDS) {
            *sum += values.get(at).unwrap_or(&0);
        }
    }
    if !seen && interface.is_some() {
        return Ok(false.into());
    }
    Ok(FIELDS.iter().zip(sums).map(|((name, _), sum)| (*name, sum)).collect::<Dict>().into())
}

/// Return the counters of the disks; of one disk, False if it is not there.
///
/// ```console
/// $ salt web1 ps.disk_io_counters device=vdb
/// ```
#[function]
pub fn disk_io_counters(
    cx: &Cx,
    /// The disk.
    device: Option<String>,
) -> Result<Value> {
    // The place of each field after the name, and what a unit of it is.
    const FIELDS: [(&str, usize, u64); 9] = [
        ("read_count", 0, 1),
        ("write_count", 4, 1),
        ("read_bytes", 2, 512),
        ("write_bytes", 6, 512),
        ("read_time", 3, 1),
        ("write_time", 7, 1),
        ("read_merged_count", 1, 1),
        ("write_merged_count", 5, 1),
        ("busy_time", 9, 1),
    ];
    let text = proc_text(cx, "diskstats")?;
    let mut sums = [0u64; 9];
    let mut seen = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, name, values @ ..] = words.as_slice() else { continue };
        match &device {
            Some(wanted) if wanted != name => continue,
            Some(_) => {}
            // A partition would be counted twice, and loops and RAM are no disks.
            None if !cx.host.exists(&Path::new("/sys/block").join(name))? => continue,
            None if name.starts_with("loop") || name.starts_with("ram") => continue,
            None => {}
        }
        seen = true;
        for (sum, (_, at, unit)) in sums.iter_mut().zip(FIELDS) {
            *sum += values.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * unit;
        }
    }
    if !seen && device.is_some() {
        return Ok(false.into());
    }
    Ok(FIELDS.iter().zip(sums).map(|((name, ..), sum)| (*name, sum)).collect::<Dict>().into())
}

/// Return who is logged in.
///
/// ```console
/// $ salt web1 ps.get_users
/// ```
#[function]
pub fn get_users(cx: &Cx) -> Result<List> {
    let ret = List::new();
    if cx.host.which("who").is_none() {
        return Ok(ret);
    }
    let text = cx.host.run(&Command::line(["who", "-u"]).query())?.stdout_text();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, terminal, day, time, _, pid, rest @ ..] = words.as_slice() else { continue };
        let host = rest.first().map(|host| host.trim_matches(['(', ')'])).unwrap_or_default();
        ret.push(dict! {
            "name" => *name, "terminal" => *terminal, "started" => format!("{day} {time}"),
            "host" => host, "pid" => pid.parse::<i64>().ok(),
        });
    }
    Ok(ret)
}

/// Return the open files of programs.
///
/// ```console
/// $ salt web1 ps.lsof nginx
/// ```
#[function]
pub fn lsof(
    cx: &Cx,
    /// The program.
    name: String,
) -> Result<Value> {
    let ran = cmd::plain(cx, ["lsof", "-c", &name], cmd::Options::default())?;
    Ok(Value::list([Value::from(name), ran.stdout.trim_end().into()]))
}

/// Return the lines of netstat that name a program.
///
/// ```console
/// $ salt web1 ps.netstat nginx
/// ```
#[function]
pub fn netstat(
    cx: &Cx,
    /// The program.
    name: String,
) -> Result<Value> {
    let lines = lines_with(cx, &["netstat", "-nap"], &name)?;
    Ok(Value::list([Value::from(name), lines.into()]))
}

/// Return the lines of ss that name a program.
///
/// ```console
/// $ salt web1 ps.ss nginx
/// ```
#[function]
pub fn ss(
    cx: &Cx,
    /// The program.
    name: String,
) -> Result<Value> {
    let lines = lines_with(cx, &["ss", "-neap"], &name)?;
    Ok(Value::list([Value::from(name), lines.into()]))
}

/// Return the lines of `ps aux` that name a program.
///
/// ```console
/// $ salt web1 ps.psaux nginx
/// ```
#[function]
pub fn psaux(
    cx: &Cx,
    /// The program, as a regular expression.
    name: String,
) -> Result<Value> {
    let regex = PyRegex::cached(&name, Flags::default())
        .map_err(|error| Error::failed(error.to_string()))?;
    let text = cx.host.run(&Command::line(["ps", "aux"]).query())?.stdout_text();
    let mut lines = Vec::new();
    for line in text.lines() {
        let fits = regex.is_match(line).map_err(|error| Error::failed(error.to_string()))?;
        if fits && !line.contains("salt-call") && !line.contains("ps.psaux") {
            lines.push(line.to_owned());
        }
    }
    let count = format!("{} occurrence(s).", lines.len());
    Ok(Value::list([Value::from(name), lines.into(), count.into()]))
}

/// Return the processes in a state.
///
/// ```console
/// $ salt web1 ps.status running
/// ```
#[function]
pub fn status(
    cx: &Cx,
    /// `running`, `sleeping`, `zombie` …
    status: String,
) -> Result<List> {
    let ret = List::new();
    for process in processes(cx)?.into_iter().filter(|process| process.status() == status) {
        ret.push(dict! { "pid" => process.pid, "name" => process.long_name() });
    }
    Ok(ret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_all_but_idle() {
        assert_eq!(ticks("cpu 10 0 5 80 5 0 0 0 0 0"), (15.0, 100.0));
        assert_eq!(share(50, 200), 25.0);
        assert_eq!(share(1, 0), 0.0);
    }
}
