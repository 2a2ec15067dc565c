//! What daemons need of the system: the background, another user, a word to the service manager.
//!
//! The order in [`begin`] matters: first the background (a fork, so no thread may run yet), then the
//! pid file while we may still write anywhere, then the other user. After that the daemon opens its
//! own files, and they belong to that user.

use std::{
    ffi::CString,
    fs, io,
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

use crate::{programs::Context, terminal};

/// Makes a daemon of this process: in the background if asked (`-d`), with its pid file, as the
/// `user` of the configuration. `own` are the folders that user must be able to use.
pub fn begin(cx: &Context, own: &[&str]) -> Result<(), String> {
    if cx.parsed.bool("daemon") {
        nix::unistd::daemon(true, false)
            .map_err(|error| format!("cannot go to the background: {error}"))?;
    }
    let Some(user) = other_user(&cx.opts.str("user"))? else { return Ok(()) };
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
    become_user(&user).map_err(|error| format!("cannot become {}: {error}", user.name))
}

/// Returns the user to become; `None` if we are that user.
fn other_user(name: &str) -> Result<Option<User>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let user = User::from_name(name)
        .map_err(|error| format!("cannot look up the user {name}: {error}"))?
        .ok_or_else(|| format!("the user {name} of the configuration does not exist"))?;
    let us = nix::unistd::geteuid();
    if us == user.uid {
        return Ok(None);
    }
    if !us.is_root() {
        return Err(format!("configured to run as {name}, and only root can become that user"));
    }
    Ok(Some(user))
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
    fn users() {
        let us = User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
        assert!(other_user(&us.name).unwrap().is_none());
        assert!(other_user("").unwrap().is_none());
        assert!(other_user("no-such-user-here").is_err());
    }
}
