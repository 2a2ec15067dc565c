//! `minion`: the keys of minions, and the minion's own process.

use std::{path::PathBuf, time::Duration};

use halite_spec::{Command, Cx, Error, Result, function, module};
use halite_value::{Dict, Value, entries};

module! {
    /// The keys of minions, and the minion's own process.
    "minion": kill, list, restart,
}

const EX_SOFTWARE: i64 = 70;

/// List the keys of the master on this machine, by state.
///
/// ```console
/// $ salt web1 minion.list
/// ```
#[function]
pub fn list(cx: &Cx) -> Result<Dict> {
    let folder = cx.opt_str("pki_dir").unwrap_or_default().replace("minion", "master");
    let ret = Dict::new();
    for state in ["minions", "minions_pre", "minions_rejected", "minions_denied"] {
        let path = PathBuf::from(&folder).join(state);
        let names = cx.host.read_dir(&path).unwrap_or_default();
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| cx.host.is_file(&path.join(name)).unwrap_or(false))
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort_by_key(|name| name.to_lowercase());
        ret.insert(state, names);
    }
    Ok(ret)
}

fn is_systemd(cx: &Cx) -> bool {
    cx.grain_str("kernel") == "Linux"
        && cx.host.is_dir("/run/systemd/system".as_ref()).unwrap_or(false)
}

/// End the minion's process.
///
/// ```console
/// $ salt web1 minion.kill
/// ```
#[function]
pub fn kill(
    cx: &Cx,
    /// Seconds it may take to end.
    #[default(15)]
    timeout: i64,
) -> Result<Dict> {
    let _ = timeout;
    let Some(pid) = cx.grain("pid").and_then(|pid| pid.to_int()).filter(|pid| *pid > 0) else {
        return Ok(entries! {
            "killed" => Value::Null, "retcode" => EX_SOFTWARE,
            "comment" => Value::list(["Unable to find \"pid\" in grains"]),
        });
    };
    let number = u32::try_from(pid).map_err(|_| Error::failed(format!("{pid} is no process")))?;
    // The job runs inside that process: it cannot watch it end, so it reports and then ends it.
    let script = format!("sleep 1; kill -TERM {number}");
    let command = Command { background: true, ..Command::shell("/bin/sh", script) };
    cx.host.run(&command)?;
    Ok(entries! { "killed" => pid, "retcode" => 0 })
}

/// Restart the minion: by systemd, or by the configured command.
///
/// ```console
/// $ salt web1 minion.restart
/// ```
#[function]
pub fn restart(
    cx: &Cx,
    /// Use systemd where it runs the machine.
    #[default(true)]
    systemd: bool,
    /// Use the service manager of Windows there.
    #[default(true)]
    win_service: bool,
    /// Have systemd look after a while whether the minion is up again.
    #[default(false)]
    schedule_retry: bool,
    /// After how many seconds.
    #[default(180)]
    retry_delay: i64,
) -> Result<Dict> {
    let _ = win_service;
    let ret = entries! {
        "killed" => Value::Null, "restart" => Value::dict(), "service_restart" => Value::dict(),
        "retcode" => 0,
    };
    let mut comment: Vec<String> = Vec::new();
    let configured = cx.opt("minion_restart_command").and_then(|list| list.items_of_sequence());
    let configured: Vec<String> =
        configured.unwrap_or_default().iter().map(|word| word.to_str().to_string()).collect();
    if let Some(program) = configured.first() {
        comment.push("Using configuration minion_restart_command:".into());
        comment.extend(configured.iter().map(|word| format!("    {word}")));
        ret.update(&kill(cx, 15)?);
        let rest = configured.iter().skip(1);
        let command = Command { background: true, ..Command::new(program).args(rest) };
        cx.host.run(&command)?;
    } else if systemd && is_systemd(cx) {
        comment.push("Using systemctl to restart salt-minion".into());
        let done = Dict::new();
        if schedule_retry {
            let check = "systemctl is-active salt-minion || systemctl start salt-minion";
            let timer = Command::new("systemd-run")
                .arg(format!("--on-active={retry_delay}"))
                .args(["/bin/sh", "-c", check]);
            let out = cx.host.run(&timer)?;
            let detail = entries! { "detail" => out.stderr_text(), "delay" => retry_delay };
            done.insert("schedule_retry", detail);
            comment.push(format!("Scheduled retry for minion restart in {retry_delay} seconds"));
        }
        let restart = Command::new("systemctl")
            .args(["restart", "--no-block", "salt-minion.service"])
            .timeout(Duration::from_secs(60));
        let out = cx.host.run(&restart)?;
        done.insert("result", out.ok());
        if out.ok() {
            comment.push("Service restart successful".into());
        } else {
            comment.push("Service restart failed".into());
            done.insert("stderr", out.stderr_text());
            ret.insert("retcode", EX_SOFTWARE);
        }
        ret.insert("service_restart", done);
    } else {
        let text = "Not running in daemon mode - will not restart process after killing";
        comment.push(text.into());
        ret.update(&kill(cx, 15)?);
    }
    if !comment.is_empty() {
        ret.insert("comment", comment);
    }
    Ok(ret)
}
