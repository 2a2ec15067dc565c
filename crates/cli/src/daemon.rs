//! What daemons need of the system: the background, another user, a word to the service manager.
//!
//! What can be known to fail is found out first ([`sole`], [`free_ports`], the user): whoever starts a
//! daemon sees the exit code of its beginning only. Then the order in [`begin`] matters: the
//! background (a fork, so no thread may run yet), the pid file while we may still write anywhere, the
//! other user. After that the daemon opens its own files, and they belong to that user.

use std::{
    ffi::CString,
    fs, io,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{MetadataExt as _, PermissionsExt as _},
            net::{SocketAddr, UnixDatagram},
        },
    },
    path::{Path, PathBuf},
};

use nix::unistd::{Gid, Uid, User};

use crate::{log_handlers, programs::Context, terminal};

/// Why this process cannot be the daemon, and the exit code that says so.
#[derive(Debug)]
pub struct Refusal {
    pub text: String,
    pub code: u8,
}

/// The user does not exist (`EX_NOUSER`).
const NO_USER: u8 = 67;
/// The ports of a master are taken: Salt's code for it.
const NO_PORTS: u8 = 4;

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { text, code: 1 }
    }
}

/// Makes a daemon of this process: in the background if asked (`-d`), with its pid file, as the
/// `user` of the configuration. `own` are the folders that user must be able to use.
pub fn begin(cx: &Context, own: &[&str]) -> Result<(), Refusal> {
    settle(cx, own)?;
    // An interpreter and a thread: neither would be left after the fork.
    log_handlers::start(&cx.opts, true);
    Ok(())
}

fn settle(cx: &Context, own: &[&str]) -> Result<(), Refusal> {
    let user = other_user(&cx.opts.str("user"))?;
    if cx.parsed.bool("daemon") {
        nix::unistd::daemon(true, false)
            .map_err(|error| format!("cannot go to the background: {error}"))?;
    }
    let Some(user) = user else { return Ok(()) };
    let pid_file = cx.opts.str("pidfile");
    write_pid(Path::new(&*pid_file)).map_err(|error| format!("{pid_file}: {error}"))?;
    for option in own {
        let folder = cx.opts.str(option);
        if !folder.is_empty() {
            hand_over(Path::new(&*folder), &user).map_err(|error| format!("{folder}: {error}"))?;
        }
    }
    // A log file is made anew when it was rotated; in Salt's own folder that user may do so.
    let log = PathBuf::from(&*cx.opts.str("log_file"));
    if let Some(folder) = log.parent().filter(|folder| folder.ends_with("salt"))
        && folder.is_dir()
    {
        chown(folder, &user).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    for file in [&*cx.opts.str("log_file"), &*pid_file] {
        if !file.is_empty() && Path::new(file).is_file() {
            chown(Path::new(file), &user).map_err(|error| format!("{file}: {error}"))?;
        }
    }
    Ok(become_user(&user).map_err(|error| format!("cannot become {}: {error}", user.name))?)
}

/// Refuses to be the second daemon with a pid file. `word` is what is in the name of its program.
pub fn sole(cx: &Context, word: &str) -> Result<(), Refusal> {
    let pid_file = cx.opts.str("pidfile");
    let named = fs::read_to_string(&*pid_file).ok().and_then(|text| text.trim().parse().ok());
    let Some(pid) = named else { return Ok(()) };
    let us = [std::process::id(), std::os::unix::process::parent_id()];
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let at = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    let folder = cx.parsed.str("config_dir").unwrap_or_default();
    if us.contains(&pid) || !is_such(&line, word, &at, Path::new(&*folder)) {
        return Ok(());
    }
    tracing::info!("An instance is already running. Exiting the Salt {word}");
    Err(format!("An instance is already running: process {pid}, says {pid_file}").into())
}

/// Tells whether a command line is that of a daemon of ours or of genuine Salt. The number in a pid
/// file outlives its process and may be anybody's, so the folder of the configuration counts too.
fn is_such(line: &[u8], word: &str, at: &Path, folder: &Path) -> bool {
    let line = String::from_utf8_lossy(line);
    let parts: Vec<&str> = line.split('\0').collect();
    // An interpreter, the script; or `halite`, the program.
    let is_program = parts.iter().take(2).any(|part| part.contains(word));
    let after = |part: &str| ["-c", "--config-dir"].contains(&part);
    let given = parts.iter().zip(parts.iter().skip(1)).find_map(|(part, next)| {
        part.strip_prefix("--config-dir=").or_else(|| after(part).then_some(*next))
    });
    is_program && at.join(given.unwrap_or("/etc/salt")) == folder
}

/// Refuses to be a master whose ports are taken.
pub fn free_ports(cx: &Context) -> Result<(), Refusal> {
    let interface = cx.opts.str("interface");
    let host = interface.trim_matches(['[', ']']);
    for name in ["publish_port", "ret_port"] {
        let port = cx.opts.get(name).and_then(|port| port.as_int()).unwrap_or(0);
        let port = u16::try_from(port).unwrap_or(0);
        if let Err(error) = TcpListener::bind((host, port)) {
            tracing::warn!(
                "Unable to bind socket {interface}:{port}, error: {error}; Is there another \
                 salt-master running?"
            );
            let text = "The salt master is shutdown. The ports are not available to bind";
            return Err(Refusal { text: text.into(), code: NO_PORTS });
        }
    }
    Ok(())
}

/// Returns the user to become; `None` if we are that user.
pub(crate) fn other_user(name: &str) -> Result<Option<User>, Refusal> {
    let Some(user) = user_named(name)? else { return Ok(None) };
    let us = nix::unistd::geteuid();
    if us == user.uid {
        return Ok(None);
    }
    if !us.is_root() {
        let text = format!("configured to run as {name}, and only root can become that user");
        return Err(text.into());
    }
    Ok(Some(user))
}

/// Returns a user, who has to exist; `None` if no name is given.
fn user_named(name: &str) -> Result<Option<User>, Refusal> {
    if name.is_empty() {
        return Ok(None);
    }
    let user = User::from_name(name)
        .map_err(|error| format!("cannot look up the user {name}: {error}"))?
        .ok_or_else(|| Refusal {
            text: format!(
                "Failed to prepare the Salt environment for user {name}. The user is not available."
            ),
            code: NO_USER,
        })?;
    Ok(Some(user))
}

/// Makes a command run as the `user` of the configuration (or of `--priv`). Whoever is not root stays
/// who they are.
pub fn drop_rights(cx: &Context) -> Result<(), Refusal> {
    let us = nix::unistd::geteuid();
    let user = user_named(&cx.opts.str("user"))?.filter(|user| us.is_root() && user.uid != us);
    let Some(user) = user else { return Ok(()) };
    Ok(become_user(&user).map_err(|error| format!("cannot become {}: {error}", user.name))?)
}

fn become_user(user: &User) -> nix::Result<()> {
    let name = CString::new(user.name.as_str()).map_err(|_| nix::errno::Errno::EINVAL)?;
    nix::unistd::initgroups(&name, user.gid)?;
    nix::unistd::setgid(user.gid)?;
    nix::unistd::setuid(user.uid)?;
    // Really for good: who can go back has not left.
    if nix::unistd::setuid(Uid::from_raw(0)).is_ok() {
        return Err(nix::errno::Errno::EPERM);
    }
    Ok(())
}

fn chown(path: &Path, user: &User) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
}

/// Gives a folder and what is in it to a user. Links are not followed.
fn hand_over(folder: &Path, user: &User) -> io::Result<()> {
    if !folder.exists() {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o750))?;
    }
    let mut waiting = vec![PathBuf::from(folder)];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.uid() != user.uid.as_raw() || Gid::from_raw(metadata.gid()) != user.gid {
            chown(&path, user)?;
        }
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        }
    }
    Ok(())
}

fn write_pid(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, std::process::id().to_string())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Tells the service manager how things are (`READY=1`, `STOPPING=1`, `RELOADING=1`), if there is one
/// that wants to know.
pub fn notify(state: &str) {
    let Some(place) = terminal::env("NOTIFY_SOCKET").filter(|place| !place.is_empty()) else {
        return;
    };
    let address = match place.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    let sent = address.and_then(|address| {
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
    });
    if let Err(error) = sent {
        tracing::warn!("the service manager at {place} was not told {state}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_are_known_by_their_command_line() {
        let check = |line: &str, folder: &str, expected: bool| {
            let (line, at) = (line.replace(' ', "\0"), Path::new("/srv"));
            let found = is_such(line.as_bytes(), "minion", at, Path::new(folder));
            assert_eq!(found, expected, "{line}");
        };
        check("/usr/bin/halite salt-minion -c /etc/a", "/etc/a", true);
        check("/usr/bin/halite salt-minion --config-dir=a -d", "/srv/a", true);
        check("/usr/bin/salt-minion -d", "/etc/salt", true);
        check("/usr/bin/python3 /usr/bin/salt-minion -c /etc/a/", "/etc/a", true);
        check("/usr/bin/halite salt-minion -c /etc/b", "/etc/a", false);
        check("/usr/bin/vi -R /var/log/salt/minion", "/etc/salt", false);
        check("", "/etc/salt", false);
    }

    #[test]
    fn users() {
        let us = User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
        assert!(other_user(&us.name).unwrap().is_none());
        assert!(other_user("").unwrap().is_none());
        assert_eq!(other_user("no-such-user-here").unwrap_err().code, NO_USER);
    }
}
