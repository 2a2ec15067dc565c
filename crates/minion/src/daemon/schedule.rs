//! The minion's schedule: starts what is due, and returns what came of it.
//!
//! What is due is decided by the crate `schedule`; here are the clock, the threads and the file.
//! The loop sleeps until the next job, and looks at the clock at least every half minute, as it may
//! be set. A job is an ordinary job of the minion, under a job id of its own; its return goes to
//! the master (as `req`: the master allots the id it keeps it under) and to the job's returners.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use halite_modules::schedule as module;
use halite_returners::Options;
use halite_schedule::{Fire, Table};
use halite_spec::Job;
use halite_value::{Dict, Value, dict, entries};
use halite_wire::{Args, Jid, Publication};
use jiff::Zoned;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    execute,
    node::{Node, random_part},
    options::{MasterType, Reader},
    own::Ground,
    tie::Tie,
};

/// However far the next job is: the clock may have been set.
const LOOK: Duration = Duration::from_secs(30);

/// The job that updates the mine.
const MINE: &str = "__mine_interval";
/// The job that looks after the connection of a proxy minion with its device.
const DEVICE: &str = "__proxy_keepalive";

/// The schedule as the daemon holds it.
pub(crate) struct Schedule {
    table: Mutex<Table>,
    changed: Notify,
    /// The loop runs.
    run: AtomicBool,
    /// The first jobs have been started.
    begun: AtomicBool,
}

impl Schedule {
    pub(crate) fn new(opts: &Dict) -> Self {
        let mut table = Table::new();
        if let Some(Value::Dict(schedule)) = opts.get("schedule") {
            table.set_config(&schedule);
        }
        let reader = Reader(opts.clone());
        if reader.flag("mine_enabled", true) {
            let minutes = opts.get("mine_interval").unwrap_or_else(|| 60.into());
            let job = entries! {
                "function" => "mine.update", "minutes" => minutes, "jid_include" => true,
                "maxrunning" => 2, "run_on_start" => true,
                "return_job" => reader.flag("mine_return_job", false), "enabled" => true,
            };
            table.put(MINE, &job, false);
        }
        Self {
            table: Mutex::new(table),
            changed: Notify::new(),
            run: AtomicBool::new(false),
            begun: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_run(&self) -> bool {
        self.run.load(Ordering::Acquire)
    }

    /// Has the connection with a device looked after, every so many minutes.
    pub(crate) fn keep_device(&self, module: &str, minutes: f64) {
        // A whole number is shown as one.
        let minutes = match minutes.fract() == 0.0 {
            true => Value::from(minutes as i64),
            false => minutes.into(),
        };
        let job = entries! {
            "function" => "status.proxy_reconnect", "minutes" => minutes, "jid_include" => true,
            "maxrunning" => 1, "return_job" => false, "enabled" => true,
            "kwargs" => dict! { "proxy_name" => module },
        };
        self.table.lock().put(DEVICE, &job, false);
        self.changed.notify_one();
    }

    /// Takes what the pillar says.
    pub(crate) fn pillar_is(&self, pillar: &Dict, grains: &Dict) {
        let part = |source: &Dict, name: &str| match source.get(name) {
            Some(Value::Dict(part)) => part,
            _ => Dict::new(),
        };
        let whens = part(grains, "whens").shallow_copy();
        whens.update(&part(pillar, "whens"));
        let mut table = self.table.lock();
        table.set_whens(&whens);
        table.set_pillar(&part(pillar, "schedule"));
        drop(table);
        self.changed.notify_one();
    }
}

impl Node {
    /// Answers `manage_schedule`.
    pub(crate) fn manage_schedule(&self, request: &Dict) -> Option<Dict> {
        let schedule = &self.schedule;
        let mut table = schedule.table.lock();
        let answer = table.manage(request, &Zoned::now())?;
        let saved = answer.save.then(|| table.saved());
        drop(table);
        schedule.changed.notify_one();
        if let Some(saved) = saved {
            self.save_schedule(&saved);
        }
        if let Some(tag) = answer.tag {
            self.bus.fire(tag, &answer.data);
        }
        Some(answer.data)
    }

    fn save_schedule(&self, schedule: &Dict) {
        let path = module::conf_path(&self.opts);
        let folder = path.parent().map(std::path::Path::to_owned).unwrap_or_default();
        let how = halite_spec::host::Write::default();
        let written = self
            .host
            .create_dirs(&folder, None)
            .and_then(|()| self.host.write(&path, module::conf_text(schedule).as_bytes(), &how));
        if let Err(error) = written {
            tracing::error!("Failed to persist the updated schedule: {error}");
        }
    }
}

/// Runs the schedule, for ever.
pub(crate) async fn run(node: Arc<Node>) {
    node.schedule.run.store(true, Ordering::Release);
    // Without a master yet there are no files, no pillar, and nobody to return to.
    while node.ground().is_none() || !node.may_begin("scheduler_before_connect") {
        tokio::select! {
            () = node.reachable.notified() => {}
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
    loop {
        let now = Zoned::now();
        let (fires, next) = {
            let mut table = node.schedule.table.lock();
            let running = |name: &str| {
                let jobs = node.jobs.list();
                jobs.iter().filter(|job| job.get_str("schedule").as_deref() == Some(name)).count()
            };
            let random = |most: u64| (random_part() * (most + 1) as f64) as u64;
            let fires = table.tick(&now, &running, &random);
            (fires, table.next())
        };
        node.schedule.begun.store(true, Ordering::Release);
        for fire in fires {
            start(&node, fire);
        }
        let wait = next.map_or(LOOK, |next| {
            let wait = next.duration_since(now.timestamp());
            Duration::try_from(wait).unwrap_or_default().clamp(Duration::from_millis(10), LOOK)
        });
        tokio::select! {
            () = node.schedule.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Starts a job of the schedule: once, however many masters there are. But each of them has a mine.
fn start(node: &Arc<Node>, fire: Fire) {
    let ready = || node.ties().into_iter().filter(|tie| tie.is_ready()).map(Ground::Tie);
    let mut grounds: Vec<Ground> = if fire.name == MINE { ready().collect() } else { Vec::new() };
    if grounds.is_empty() {
        grounds.extend(node.ground());
    }
    for ground in grounds {
        start_on(node, ground, fire.clone());
    }
}

/// Gives the mine to a master that was not there when it was last updated.
pub(crate) fn update_mine(tie: &Arc<Tie>) {
    let node = &tie.node;
    let job = node.schedule.table.lock().job(MINE).map(|job| job.config.deep_copy());
    if let Some(job) = job.filter(|_| node.schedule.begun.load(Ordering::Acquire)) {
        let fire = Fire { name: MINE.into(), job, function: "mine.update".into() };
        start_on(node, Ground::Tie(Arc::clone(tie)), fire);
    }
}

fn start_on(node: &Arc<Node>, ground: Ground, fire: Fire) {
    let jid = Jid::now();
    let job = fire.job;
    let mut items = match job.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(args) => args.items_of_sequence().unwrap_or_else(|| vec![args]),
    };
    let kwargs = match job.get("kwargs") {
        Some(Value::Dict(kwargs)) => kwargs.deep_copy(),
        _ => Dict::new(),
    };
    let arg = Args { args: items.clone(), kwargs: kwargs.clone() }.write();
    if !kwargs.is_empty() {
        items.push(kwargs.into());
    }
    let load = entries! {
        "id" => &node.settings.id, "fun" => fire.function.as_str(), "fun_args" => items.clone(),
        "schedule" => fire.name.as_str(), "jid" => &jid, "arg" => arg,
        "tgt" => &node.settings.id, "tgt_type" => "glob", "user" => "root",
    };
    let metadata = metadata(&job);
    if let Some(metadata) = &metadata {
        load.insert("metadata", metadata);
    }
    let publication = match Publication::read(&load) {
        Ok(publication) => publication,
        Err(error) => {
            tracing::error!("Scheduled job \"{}\" cannot be run: {error}", fire.name);
            return;
        }
    };
    tracing::info!("Running scheduled job: {} with jid {jid}", fire.name);
    let node = Arc::clone(node);
    node.clone().jobs.start(jid.clone().as_str(), load, false, move |ticket| {
        let own = Job::new(jid.as_str(), fire.function.as_str(), "root");
        let cx = ground.cx(own, ticket.cancel.clone());
        let ret = execute::run(&cx, &publication, ticket);
        ret.insert("fun_args", Value::list(items));
        ret.insert("schedule", fire.name.as_str());
        ret.insert("pid", nix::unistd::gettid().as_raw());
        ret.remove("user");
        // How states are shown is told, how errors are is not; and who asks for what is not there
        // has a code of its own.
        let says = |name: &str, text: &str| ret.get(name).is_some_and(|value| value == *text);
        if says("out", "nested") {
            ret.remove("out");
        }
        if says("return", &crate::failure::missing(&fire.function)) {
            ret.insert("retcode", 254);
        }
        finish(&node, &ground, &cx, &jid, &job, ret);
    });
}

/// Hands the return of a scheduled job on.
fn finish(
    node: &Arc<Node>,
    ground: &Ground,
    cx: &halite_spec::Cx,
    jid: &Jid,
    job: &Dict,
    ret: Dict,
) {
    let names = |value: Option<Value>| -> Vec<String> {
        let Some(value) = value.filter(Value::truthy) else { return Vec::new() };
        let items = value.items_of_sequence().unwrap_or_else(|| vec![value]);
        items
            .iter()
            .flat_map(|name| name.to_str().split(',').map(str::to_owned).collect::<Vec<_>>())
            .collect()
    };
    let mut returners = names(job.get("returner"));
    returners.extend(names(node.opts.get("schedule_returner")));
    let is_returned = !returners.is_empty();
    if is_returned {
        let options = Options::given(job.get("return_config"), job.get("return_kwargs"));
        halite_returners::deliver_all(cx, returners.iter().map(String::as_str), &options, &ret);
    }
    if !job.get("return_job").is_none_or(|wanted| wanted.truthy()) {
        return;
    }
    // What went to a returner is kept all the same, as in Salt.
    let is_kept = is_returned || job.get("return_job").is_none_or(|wanted| wanted != "nocache");
    ret.insert("jid", if is_kept { "req" } else { "nocache" });
    let told = ret.shallow_copy();
    told.insert("cmd", "_return");
    node.bus.fire("__schedule_return", &told);
    match ground.master() {
        Some(master) => node.deliver(&format!("req-{jid}"), master, ret, true),
        // It began before there was a master; whichever comes gets it.
        None if node.settings.master_type != MasterType::Disable => {
            node.deliver(&format!("req-{jid}"), "", ret, true);
        }
        None => {
            let text = halite_value::json::to_string(&ret.into()).unwrap_or_default();
            tracing::info!("scheduled job {jid} returned {text}");
        }
    }
}

/// The job's metadata, with the times Salt adds.
fn metadata(job: &Dict) -> Option<Dict> {
    match job.get("metadata") {
        Some(Value::Dict(metadata)) => {
            let now = Zoned::now();
            let metadata = metadata.deep_copy();
            metadata.insert("_TOS", now.strftime("%z").to_string());
            metadata.insert("_TS", now.strftime("%a %b %e %H:%M:%S %Y").to_string());
            metadata.insert("_TT", now.strftime("%Y %B %d %a %H %m").to_string());
            Some(metadata)
        }
        None | Some(Value::Null) => None,
        Some(_) => {
            tracing::warn!("the metadata of a scheduled job are no dictionary; they are left out");
            None
        }
    }
}
