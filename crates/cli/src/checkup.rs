//! `halite doctor --master`: is this machine fit for a master with this configuration?
//!
//! One row per thing looked at: `ok`, `note` (worth knowing) or `wrong` (the master will not start, or
//! not work). Nothing is changed by looking.

use std::{
    fs,
    net::{TcpListener, ToSocketAddrs as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use halite_client::{Client, Request};
use halite_config::Opts;
use halite_keys::Keys;
use halite_value::{Dict, Value};
use nix::{sys::resource, unistd};

/// Room below which a store will soon complain.
const LEAST_FREE: u64 = 200 << 20;
/// The longest path of a socket on Linux.
const LONGEST_SOCKET: usize = 107;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Ok,
    Note,
    Wrong,
}

/// One thing that was looked at.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

fn row(state: State, what: &'static str, text: impl Into<String>) -> Row {
    Row { state, what, text: text.into() }
}

/// Looks at everything a master with these options needs.
#[must_use]
pub(crate) fn master(opts: &Opts) -> Vec<Row> {
    let mut rows = vec![user(opts)];
    for option in ["pki_dir", "cachedir", "sock_dir"] {
        rows.push(folder(opts, option));
    }
    rows.extend(secrets(opts));
    rows.push(socket_length(opts));
    rows.push(space(opts));
    rows.push(keys(opts));
    rows.push(descriptors(opts));
    for option in ["file_roots", "pillar_roots"] {
        rows.extend(roots(opts, option));
    }
    rows.extend(eauth(opts));
    rows.extend(running(opts));
    rows
}

/// Writes rows for people.
#[must_use]
pub(crate) fn render(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let state = match row.state {
            State::Ok => "ok   ",
            State::Note => "note ",
            State::Wrong => "wrong",
        };
        format!("{state}  {:<12} {}\n", row.what, row.text)
    };
    rows.iter().map(line).collect()
}

fn user(opts: &Opts) -> Row {
    let name = opts.str("user");
    match unistd::User::from_name(&name) {
        Ok(Some(user)) => {
            let us = unistd::geteuid();
            if us.is_root() || us == user.uid {
                row(State::Ok, "user", format!("the master runs as {name}"))
            } else {
                let text = format!("the master is to run as {name}, and only root can start it so");
                row(State::Note, "user", text)
            }
        }
        _ => row(State::Wrong, "user", format!("the user {name} does not exist")),
    }
}

fn folder(opts: &Opts, option: &'static str) -> Row {
    let path = PathBuf::from(&*opts.str(option));
    let Ok(metadata) = fs::metadata(&path) else {
        let above = path.ancestors().skip(1).find(|folder| folder.exists());
        let may =
            above.is_some_and(|folder| unistd::access(folder, unistd::AccessFlags::W_OK).is_ok());
        let text = format!("{} does not exist yet", path.display());
        return row(if may { State::Note } else { State::Wrong }, option, text);
    };
    if !metadata.is_dir() {
        return row(State::Wrong, option, format!("{} is not a folder", path.display()));
    }
    if unistd::access(&path, unistd::AccessFlags::W_OK).is_err() {
        return row(State::Wrong, option, format!("{} cannot be written to", path.display()));
    }
    let mode = metadata.permissions().mode() & 0o777;
    let most = if opts.bool("permissive_pki_access") { 0o750 } else { 0o700 };
    if option == "pki_dir" && mode & !most != 0 {
        let text = format!("{} is open to others (mode {mode:04o})", path.display());
        return row(State::Note, option, text + "; the master closes it when it starts");
    }
    row(State::Ok, option, path.display().to_string())
}

/// Private keys that others can read.
fn secrets(opts: &Opts) -> Vec<Row> {
    let mut rows = Vec::new();
    let (pki, cache) = (opts.str("pki_dir"), opts.str("cachedir"));
    let mut files: Vec<PathBuf> = fs::read_dir(&*pki)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "pem"))
        .collect();
    files.push(Path::new(&*cache).join(".root_key"));
    for file in files {
        let Ok(metadata) = fs::metadata(&file) else { continue };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let text = format!("{} can be read by others (mode {mode:04o})", file.display());
            rows.push(row(State::Wrong, "secrets", text));
        }
    }
    if rows.is_empty() {
        rows.push(row(State::Ok, "secrets", "private keys are private"));
    }
    rows
}

fn socket_length(opts: &Opts) -> Row {
    let path = Path::new(&*opts.str("sock_dir")).join("master_event_pull.ipc");
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        let text = format!("{} is too long for a socket ({length} bytes)", path.display());
        return row(State::Wrong, "sockets", text);
    }
    row(State::Ok, "sockets", format!("in {}", opts.str("sock_dir")))
}

fn space(opts: &Opts) -> Row {
    let cache = opts.str("cachedir");
    let place = Path::new(&*cache).ancestors().find(|folder| folder.exists());
    let Some(stat) = place.and_then(|place| nix::sys::statvfs::statvfs(place).ok()) else {
        return row(State::Note, "disk", format!("{cache} cannot be looked at"));
    };
    let free = stat.blocks_available() * stat.fragment_size();
    let text = format!("{} MB free for {cache}", free >> 20);
    row(if free < LEAST_FREE { State::Wrong } else { State::Ok }, "disk", text)
}

fn count(lists: &Dict, name: &str) -> usize {
    lists.get(name).and_then(|ids| ids.items_of_sequence()).map_or(0, |ids| ids.len())
}

fn keys(opts: &Opts) -> Row {
    match Keys::from_opts(opts.values()).list() {
        Ok(lists) => {
            let of = |name: &str| count(&lists, name);
            let text = format!(
                "{} accepted, {} waiting, {} rejected, {} denied",
                of("minions"),
                of("minions_pre"),
                of("minions_rejected"),
                of("minions_denied")
            );
            // A denied key is somebody else under a known name, or a machine installed anew.
            row(if of("minions_denied") > 0 { State::Note } else { State::Ok }, "keys", text)
        }
        Err(error) => row(State::Wrong, "keys", error.to_string()),
    }
}

fn descriptors(opts: &Opts) -> Row {
    let Ok((_, hard)) = resource::getrlimit(resource::Resource::RLIMIT_NOFILE) else {
        return row(State::Note, "descriptors", "the limit of open files is not known");
    };
    let lists = Keys::from_opts(opts.values()).list().unwrap_or_default();
    // A genuine minion has two connections, now and then more.
    let wanted = 3 * count(&lists, "minions") as u64 + 1000;
    let text = format!("{hard} open files allowed");
    if hard < wanted {
        let text = format!("{text}; the accepted minions may need {wanted} (LimitNOFILE=)");
        return row(State::Note, "descriptors", text);
    }
    row(State::Ok, "descriptors", text)
}

fn roots(opts: &Opts, option: &'static str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (env, paths) in opts.dict(option).entries() {
        for path in paths.items_of_sequence().unwrap_or_default() {
            let path = path.to_str();
            if !Path::new(path.as_str()).is_dir() && !path.contains("__env__") {
                let text = format!("{path}, of the environment {}, does not exist", env.to_str());
                rows.push(row(State::Note, option, text));
            }
        }
    }
    rows
}

fn eauth(opts: &Opts) -> Vec<Row> {
    let known = halite_master::eauth::built_in();
    let mut rows = Vec::new();
    for system in opts.dict("external_auth").keys() {
        let system = system.to_str();
        let file = format!("{}/auth/{system}.py", opts.str("extension_modules"));
        if !known.contains_key(system.as_str()) && Path::new(&file).is_file() {
            rows.push(row(State::Ok, "eauth", format!("`{system}`, in Python")));
        } else if !known.contains_key(system.as_str()) {
            let text = format!("external_auth names `{system}`, which Halite does not have");
            rows.push(row(State::Wrong, "eauth", text));
        } else if system == "pam" && opts.str("user") != "root" {
            let text = "`pam` can check other users' passwords only if the master runs as root";
            rows.push(row(State::Wrong, "eauth", text));
        } else {
            rows.push(row(State::Ok, "eauth", format!("`{system}`")));
        }
    }
    rows
}

/// The ports and, if a master runs, its own words.
fn running(opts: &Opts) -> Vec<Row> {
    let mut client = Client::connect(Path::new(&*opts.str("sock_dir"))).ok();
    let told = client.as_mut().and_then(|client| {
        let hello = client.call(&Request::Hello).ok()?;
        Some((hello, client.call(&Request::Statistics).ok()))
    });
    let Some((hello, statistics)) = told else {
        let free = |option: &'static str| {
            let port = u16::try_from(opts.int(option)).unwrap_or(0);
            let interface = opts.str("interface");
            let place = (&*interface, port).to_socket_addrs().ok().and_then(|mut all| all.next());
            match place.map(TcpListener::bind) {
                Some(Ok(_)) => row(State::Ok, option, format!("{port} is free")),
                Some(Err(error)) => row(State::Wrong, option, format!("{port}: {error}")),
                None => row(State::Wrong, option, format!("{interface} is not an address")),
            }
        };
        return vec![
            row(State::Note, "master", "does not run"),
            free("ret_port"),
            free("publish_port"),
        ];
    };
    let number = |name: &str| {
        let value = statistics.as_ref().and_then(|all| all.get(name));
        value.as_ref().and_then(Value::as_int).unwrap_or(0)
    };
    let mut rows = vec![row(
        State::Ok,
        "master",
        format!(
            "runs (pid {}), {} connections, {} jobs kept",
            hello.get("pid").unwrap_or_default(),
            number("connections"),
            number("jobs")
        ),
    )];
    for (name, text) in [
        ("failed_writes", "writes to the store failed"),
        ("dropped", "publications were dropped: somebody reads too slowly"),
        ("impersonations", "requests came in another's name"),
        ("replays", "requests came again"),
        ("dropped_events", "events of minions that send too many were dropped"),
        ("dead_letters", "reactions failed: `salt-run reactor.dead` shows them"),
    ] {
        if number(name) > 0 {
            rows.push(row(State::Note, "master", format!("{} {text}", number(name))));
        }
    }
    let caches = statistics.as_ref().and_then(|all| all.get("job_caches"));
    for (name, counts) in
        caches.and_then(|all| all.as_dict().map(Dict::entries)).unwrap_or_default()
    {
        let of = |what: &str| counts.get(what).and_then(|n| n.as_int()).unwrap_or(0);
        let (state, name) =
            (if of("dropped") > 0 { State::Wrong } else { State::Note }, name.to_str());
        let text =
            format!("{} records wait for {name}, {} were dropped", of("waiting"), of("dropped"));
        rows.push(row(state, "job cache", text));
    }
    rows
}

#[cfg(test)]
mod tests {
    use halite_config::Role;
    use halite_value::{dict, entries};

    use super::*;

    #[test]
    fn what_is_wrong_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir_all(path("pki")).unwrap();
        fs::write(path("pki/m.pem"), "secret").unwrap();
        fs::set_permissions(path("pki/m.pem"), fs::Permissions::from_mode(0o644)).unwrap();
        let opts = entries! {
            "user" => "no-such-user-here", "pki_dir" => path("pki"), "cachedir" => path("cache"),
            "sock_dir" => path(&"long/".repeat(40)), "interface" => "127.0.0.1", "ret_port" => 0,
            "publish_port" => 0, "external_auth" => dict! { "nosuch" => dict! {}, "auto" => dict! {} },
            "file_roots" => dict! { "base" => Value::list([path("srv")]) },
        };
        let rows = master(&Opts::new(Role::Master, opts));
        let state = |what: &str, text: &str| {
            let found = rows.iter().find(|row| row.what == what && row.text.contains(text));
            found.unwrap_or_else(|| panic!("{what} {text}: {}", render(&rows))).state
        };
        assert_eq!(state("user", "does not exist"), State::Wrong);
        assert_eq!(state("secrets", "m.pem"), State::Wrong);
        assert_eq!(state("sockets", "too long"), State::Wrong);
        assert_eq!(state("eauth", "nosuch"), State::Wrong);
        assert_eq!(state("eauth", "auto"), State::Ok);
        assert_eq!(state("file_roots", "srv"), State::Note);
        assert_eq!(state("keys", "0 accepted"), State::Ok);
        assert_eq!(state("master", "does not run"), State::Note);
    }
}
