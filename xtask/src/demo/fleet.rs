//! The demo's machines: a scratch folder with programs and configurations, and the daemons in it.
//!
//! Whatever happens, daemons are ended when the [`Fleet`] is dropped, unless it was told to let them
//! live. They listen on loopback only, on ports that were free a moment ago.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// The minions, each with a folder of its own that stands for `/`.
pub(super) const MINIONS: [&str; 3] = ["db1", "web1", "web2"];
/// The machine without a master.
pub(super) const ALONE: &str = "web0";
/// Longer paths leave too little room for the names of unix sockets (107 bytes on Linux).
const MAX_PATH: usize = 60;

/// Returns where the demo lives: below the build folder, if sockets fit there.
pub(super) fn scratch(root: &Path) -> PathBuf {
    let wanted = shell::target_dir(root).join("demo");
    if wanted.as_os_str().len() <= MAX_PATH {
        return wanted;
    }
    std::env::temp_dir().join(format!("halite-demo-{}", std::process::id()))
}

/// Makes the machines: programs, configurations, folders.
pub(super) fn prepare(root: &Path, scratch: &Path) -> Result<()> {
    if scratch.exists() {
        stop_earlier(scratch);
        fs::remove_dir_all(scratch)?;
    }
    for folder in ["bin", "slip", "log", "pid"] {
        fs::create_dir_all(scratch.join(folder))?;
    }
    let halite = shell::target_dir(root).join("debug/halite");
    std::os::unix::fs::symlink(&halite, scratch.join("bin/halite"))?;
    shell::output(Command::new(&halite).arg("install-links").arg(scratch.join("bin")))?;
    let example = root.join("examples/demo");
    let user = shell::output(Command::new("id").arg("-un"))?;
    let trees = format!(
        "user: {}\nfile_roots: {{base: [{}]}}\npillar_roots: {{base: [{}]}}\n",
        user.trim(),
        example.join("salt").display(),
        example.join("pillar").display(),
    );
    let (publish, ret) = free_ports()?;
    let write = |machine: &str, file: &str, text: String| -> Result<()> {
        let folder = scratch.join(machine).join("etc");
        fs::create_dir_all(&folder)?;
        let place = scratch.join(machine);
        Ok(fs::write(folder.join(file), format!("root_dir: {}\n{text}", place.display()))?)
    };
    let ports = format!("publish_port: {publish}\nret_port: {ret}\n");
    let heal = example.join("reactor/heal.sls");
    let reactor = format!("reactor:\n  - demo/site/gone: [{}]\n", heal.display());
    write("master", "master", format!("interface: 127.0.0.1\n{ports}{trees}{reactor}"))?;
    for minion in MINIONS {
        let config = format!(
            "id: {minion}\nmaster: 127.0.0.1\nmaster_port: {ret}\nacceptance_wait_time: 1\n\
             recon_default: 100\nrecon_max: 500\nuser: {}\n",
            user.trim()
        );
        write(minion, "minion", config)?;
    }
    write(ALONE, "minion", format!("id: {ALONE}\nfile_client: local\n{trees}"))?;
    fs::write(scratch.join("slip/minion"), "id: web0\nfile_client: local\nlog_levle: info\n")?;
    Ok(())
}

/// Returns two free ports, below those the kernel gives to clients. Another program may take one
/// before we do; then the demo says so.
fn free_ports() -> Result<(u16, u16)> {
    let mut free = (24_505..32_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().zip(free.next()).context("no free port")
}

/// Tells a process to end. The shell has `kill` built in; the program of that name may be missing.
fn ask_to_end(pid: &str) {
    let _ = Command::new("sh").args(["-c", "kill \"$0\"", pid]).status();
}

/// Ends daemons of an earlier demo that was kept, so that its folder can be used again.
fn stop_earlier(scratch: &Path) {
    for file in fs::read_dir(scratch.join("pid")).into_iter().flatten().flatten() {
        let Ok(pid) = fs::read_to_string(file.path()) else { continue };
        let command = fs::read_to_string(format!("/proc/{}/cmdline", pid.trim()));
        // The number may belong to somebody else by now.
        if command.is_ok_and(|line| line.contains(&scratch.display().to_string())) {
            ask_to_end(pid.trim());
        }
    }
}

/// The daemons that run.
pub(super) struct Fleet {
    scratch: PathBuf,
    running: Vec<(String, Child)>,
    /// They shall outlive us.
    keep: bool,
}

impl Fleet {
    pub(super) fn new(scratch: &Path, keep: bool) -> Self {
        Self { scratch: scratch.to_owned(), running: Vec::new(), keep }
    }

    /// Starts a daemon of a machine. Its log is `log/<machine>`.
    pub(super) fn start(&mut self, program: &str, machine: &str) -> Result<()> {
        let log = self.scratch.join("log").join(machine);
        let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let path = self.scratch.join("bin").join(program);
        let mut command = Command::new(&path);
        if self.keep {
            command.process_group(0);
        }
        // Otherwise they share our process group: Ctrl-C ends all of us.
        let child = command
            .arg("-c")
            .arg(self.scratch.join(machine).join("etc"))
            .args(["-l", "info"])
            .current_dir(&self.scratch)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", path.display()))?;
        fs::write(self.scratch.join("pid").join(machine), format!("{}\n", child.id()))?;
        self.running.push((machine.to_owned(), child));
        Ok(())
    }

    /// Kills a daemon as a power cut would.
    pub(super) fn kill(&mut self, machine: &str) -> Result<()> {
        let at = self.running.iter().position(|(name, _)| name == machine);
        let (_, mut child) = self.running.remove(at.context("no such daemon runs")?);
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Waits until something is so; `what` is for the error. A daemon that ended is an error.
    pub(super) fn wait(
        &mut self,
        what: &str,
        mut is_so: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(30);
        while !is_so()? {
            self.are_alive()?;
            if Instant::now() > until {
                bail!("{what}: not within 30 seconds\n{}", self.logs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn are_alive(&mut self) -> Result<()> {
        let mut ended = None;
        for (machine, child) in &mut self.running {
            if let Some(status) = child.try_wait()? {
                ended = Some(format!("the daemon of {machine} ended: {status}"));
            }
        }
        match ended {
            Some(text) => bail!("{text}\n{}", self.logs()),
            None => Ok(()),
        }
    }

    /// Returns the last lines of all logs.
    pub(super) fn logs(&self) -> String {
        let mut text = String::new();
        for machine in ["master"].iter().chain(&MINIONS) {
            let log = fs::read_to_string(self.scratch.join("log").join(machine));
            let log = log.unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(15)..).unwrap_or_default();
            text += &format!("── log of {machine}\n{}\n", tail.join("\n"));
        }
        text
    }

    /// Lets the daemons live when we end.
    pub(super) fn keep(mut self) {
        self.running.clear();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Asked first, so that they leave nothing half done; all at once, so that it is quick.
        for (_, child) in &self.running {
            ask_to_end(&child.id().to_string());
        }
        let until = Instant::now() + Duration::from_secs(5);
        for (_, child) in &mut self.running {
            while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
