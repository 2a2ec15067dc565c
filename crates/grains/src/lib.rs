//! Grains: what a machine says about itself.
//!
//! The built-in grains are gathered by a handful of jobs that run side by side, each reading what
//! it needs through a `Host`: files below `/proc`, `/sys` and `/etc`, the kernel, the resolver. A
//! program is started only for what no file tells (see [`system`] and [`hardware`]). Every job
//! returns fragments, and a fragment knows its [`Slot`]: so the result has Salt's order however
//! the jobs finish.
//!
//! Then they are merged as Salt merges them: the core grains, the users' own (the [`Collector`]'s
//! extra providers), the other built-in ones with the static grains file among them, and last what
//! the configuration says under `grains`.
//!
//! Asking name servers may take seconds, and other grains do not wait for each other: a caller in
//! a hurry leaves `fqdns` out ([`Collector::without`]) and asks for it later ([`fqdns`]).

mod cache;
mod distribution;
mod hardware;
mod merge;
mod network;
mod probe;
mod proxy;
mod settings;
mod shell;
mod system;
mod tables;
mod virt;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    time::{Duration, Instant},
};

pub use cache::{load_cached, store_cached};
use halite_spec::Host;
use halite_value::{Dict, Value};
pub use network::fqdns;

use crate::probe::Probe;

/// The release whose grains these are, for `saltversion`.
pub const SALT_VERSION: &str = "3008.3";

/// Where a fragment stands among the others; Salt's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    AppendDomain,
    Cwd,
    Gateway,
    Dns,
    FibreChannel,
    Fqdns,
    MachineId,
    Master,
    ServerId,
    Hostname,
    HwaddrInterfaces,
    Id,
    Ip4Interfaces,
    Ip6Interfaces,
    IpFqdn,
    IpInterfaces,
    KernelParams,
    Locale,
    Kernel,
    Selinux,
    Systemd,
    Init,
    Distribution,
    Cpu,
    Gpu,
    DeviceTree,
    OsArch,
    Memory,
    Hardware,
    Virtual,
    Ps,
    OsRelease,
    Path,
    Versions,
    // Users' own grains come between these two: they override the core ones only.
    Disks,
    GrainsFile,
    Shell,
    Transactional,
    Uefi,
    Lvm,
    Mdadm,
    Process,
    Opts,
    Package,
    Resources,
    Truststore,
}

impl Slot {
    fn is_core(self) -> bool {
        self < Self::Disks
    }
}

pub(crate) type Fragments = Vec<(Slot, Dict)>;

struct Job {
    name: &'static str,
    run: fn(&Probe<'_>) -> Fragments,
}

/// The slow ones first, so that they are under way while the others are done.
const JOBS: [Job; 10] = [
    Job { name: "fqdns", run: network::reverse_names },
    Job { name: "hostname", run: network::names },
    Job { name: "lvm", run: hardware::lvm },
    Job { name: "systemd", run: system::systemd },
    Job { name: "cpu", run: hardware::cpu },
    Job { name: "virtual", run: virt::machine },
    Job { name: "os", run: distribution::os },
    Job { name: "interfaces", run: network::interfaces },
    Job { name: "devices", run: hardware::devices },
    Job { name: "settings", run: settings::settings },
];

/// Gathers the users' own grains: gets those gathered so far, returns more.
pub type Provider<'a> = Box<dyn Fn(&Dict) -> Result<Dict, String> + Send + Sync + 'a>;

/// Gathers grains.
#[derive(Default)]
pub struct Collector<'a> {
    extra: Vec<(String, Provider<'a>)>,
    without: Vec<String>,
}

/// What came out, and how.
pub struct Report {
    pub grains: Dict,
    /// How long each job took; they overlap.
    pub timings: Vec<(String, Duration)>,
    /// What went wrong; the grains concerned are missing.
    pub problems: Vec<String>,
}

/// Gathers all built-in and static grains. `opts["grains"]` must hold what the configuration says,
/// not what was gathered before.
pub fn collect(host: &dyn Host, opts: &Dict) -> Dict {
    Collector::new().collect(host, opts).grains
}

impl<'a> Collector<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider of the users' own grains; they run one after the other, in this order.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, provider: Provider<'a>) -> Self {
        self.extra.push((name.into(), provider));
        self
    }

    /// Leaves a job out: `fqdns`, `hostname`, `lvm`, `systemd` …
    #[must_use]
    pub fn without(mut self, job: impl Into<String>) -> Self {
        self.without.push(job.into());
        self
    }

    pub fn collect(&self, host: &dyn Host, opts: &Dict) -> Report {
        let mut merging = merge::Merging::new(opts);
        if opts.get("skip_grains").is_some_and(|value| value.truthy()) {
            return merging.finish(None);
        }
        let probe = Probe::new(host, opts);
        let (mut fragments, timings, problems) = self.run_jobs(&probe);
        merging.timings = timings;
        merging.problems = problems;
        fragments.extend(system::derived(&fragments));
        if opts.get("proxyid").is_some_and(|id| id.truthy()) {
            fragments = proxy::without_machine(fragments);
        }
        fragments.sort_by_key(|(slot, _)| *slot);
        let (core, rest): (Vec<_>, Vec<_>) =
            fragments.into_iter().partition(|(slot, _)| slot.is_core());
        for (_, fragment) in core {
            merging.add(&fragment);
        }
        for (name, provider) in &self.extra {
            let started = Instant::now();
            match catch_unwind(AssertUnwindSafe(|| provider(&merging.grains))) {
                Ok(Ok(fragment)) => merging.add(&fragment),
                Ok(Err(problem)) => merging.problems.push(format!("{name}: {problem}")),
                Err(_) => merging.problems.push(format!("{name}: it panicked")),
            }
            merging.timings.push((name.clone(), started.elapsed()));
        }
        for (_, fragment) in rest {
            merging.add(&fragment);
        }
        merging.finish(opts.get("grains").as_ref().and_then(Value::as_dict))
    }

    fn run_jobs(&self, probe: &Probe<'_>) -> (Fragments, Vec<(String, Duration)>, Vec<String>) {
        let done = Mutex::new((Vec::new(), Vec::new(), Vec::new()));
        let run = |job: &Job| {
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| (job.run)(probe)));
            let time = started.elapsed();
            let Ok(mut done) = done.lock() else { return };
            done.1.push((job.name.to_owned(), time));
            match outcome {
                Ok(fragments) => done.0.extend(fragments),
                Err(_) => done.2.push(format!("{}: it panicked", job.name)),
            }
        };
        let wanted: Vec<&Job> =
            JOBS.iter().filter(|job| !self.without.iter().any(|name| name == job.name)).collect();
        std::thread::scope(|scope| {
            if let Some((last, others)) = wanted.split_last() {
                for job in others {
                    let started = std::thread::Builder::new().spawn_scoped(scope, || run(job));
                    if started.is_err() {
                        run(job);
                    }
                }
                run(last);
            }
        });
        done.into_inner().unwrap_or_default()
    }
}
