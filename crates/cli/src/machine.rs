//! The real machine, as the configuration sees it.

use std::{
    fs, io,
    net::{IpAddr, ToSocketAddrs},
    path::Path,
    process::{Command, Stdio},
};

use halite_config::{Machine, fits};
use nix::unistd::{Uid, User};

/// This machine.
pub struct Real;

impl Machine for Real {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        let (root, rest) = match pattern.strip_prefix('/') {
            Some(rest) => ("/", rest),
            None => ("", pattern),
        };
        let mut found = vec![root.to_string()];
        for part in rest.split('/').filter(|part| !part.is_empty()) {
            found = found.iter().flat_map(|folder| step(folder, part)).collect();
        }
        found
    }

    fn is_file(&self, path: &str) -> bool {
        Path::new(path).is_file()
    }

    fn is_dir(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn age(&self, path: &str) -> Option<u64> {
        let changed = fs::metadata(path).ok()?.modified().ok()?;
        Some(changed.elapsed().map_or(0, |age| age.as_secs()))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        if let Some(folder) = Path::new(path).parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)
    }

    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn user(&self) -> String {
        let uid = Uid::effective();
        User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
    }

    fn home(&self) -> String {
        let of_user = || {
            let user = User::from_uid(Uid::current()).ok().flatten()?;
            Some(user.dir.to_string_lossy().into_owned())
        };
        let home = self.env("HOME").or_else(of_user).unwrap_or_default();
        home.trim_end_matches('/').into()
    }

    fn current_dir(&self) -> String {
        std::env::current_dir()
            .map_or_else(|_| "/".into(), |dir| dir.to_string_lossy().into_owned())
    }

    fn host_names(&self) -> Box<dyn Iterator<Item = String> + '_> {
        let host = host_name();
        let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        let first = [qualified(&host, &hosts), host];
        let files = ["/etc/hostname", "/etc/nodename", "/etc/hosts"];
        let named = files.into_iter().flat_map(|file| {
            let text = fs::read_to_string(file).unwrap_or_default();
            names_in(&text)
        });
        // Every command looks for a name, and mostly the first one will do.
        let last = std::iter::once_with(addresses).flatten();
        Box::new(first.into_iter().chain(named).chain(last))
    }

    fn memory(&self) -> u64 {
        let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

/// Returns what one part of a pattern matches in a folder.
fn step(folder: &str, part: &str) -> Vec<String> {
    let join = |name: &str| match folder {
        "" => name.to_string(),
        folder if folder.ends_with('/') => format!("{folder}{name}"),
        folder => format!("{folder}/{name}"),
    };
    if !part.contains(['*', '?', '[']) {
        let path = join(part);
        return if Path::new(&path).exists() { vec![path] } else { Vec::new() };
    }
    let Ok(entries) = fs::read_dir(if folder.is_empty() { "." } else { folder }) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| part.starts_with('.') || !name.starts_with('.'))
        .filter(|name| fits(part, name))
        .map(|name| join(&name))
        .collect()
}

fn host_name() -> String {
    nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the fully qualified form of a host name: from the hosts file, or else from the resolver.
fn qualified(host: &str, hosts: &str) -> String {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    for line in lines {
        let mut words = line.split_whitespace().skip(1);
        let names: Vec<&str> = words.by_ref().collect();
        if names.contains(&host) {
            let dotted = names.iter().find(|name| name.contains('.'));
            return (*dotted.unwrap_or(&names[0])).into();
        }
    }
    if host.contains('.') || (host, 0).to_socket_addrs().is_err() {
        return host.into();
    }
    // The resolver knows the name: the system's own tool asks it for the canonical form.
    let asked =
        Command::new("hostname").arg("-f").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let answer = asked.ok().filter(|out| out.status.success());
    let name = answer.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string());
    name.filter(|name| name.contains('.')).unwrap_or_else(|| host.into())
}

/// Returns the words of lines that name this machine: a lone word, or a loopback address and names.
fn names_in(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| {
            words.len() == 1
                || words.first().is_some_and(|w| w.starts_with("127.") || w.starts_with("::1"))
        })
        .flatten()
        .map(String::from)
        .collect()
}

fn addresses() -> Vec<String> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| interface.address?.as_sockaddr_in().map(|a| IpAddr::from(a.ip())))
        .filter(|address| !address.is_loopback())
        .map(|address| address.to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1 web1.example web1 # me\n10.0.0.1 gw\n";
        assert_eq!(qualified("web1", hosts), "web1.example");
        assert_eq!(qualified("gw", hosts), "gw");
        assert_eq!(
            names_in(hosts),
            ["127.0.0.1", "localhost", "127.0.1.1", "web1.example", "web1"]
        );
        assert_eq!(names_in("web1\n"), ["web1"]);
    }
}
