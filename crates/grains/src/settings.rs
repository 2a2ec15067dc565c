//! The rest: kernel parameters, locale, environment, process, options, and the static grains file.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use halite_value::{Value, dict, list, yaml};
use jiff::{Timestamp, tz::TimeZone};
use sha2::{Digest, Sha256};

use crate::{Fragments, SALT_VERSION, Slot, network, probe::Probe, shell};

fn put(fragments: &mut Fragments, slot: Slot, entries: &Value) {
    fragments.push((slot, entries.as_dict().cloned().unwrap_or_default()));
}

pub(crate) fn settings(probe: &Probe<'_>) -> Fragments {
    let mut all = vec![network::gateways(probe), network::dns(probe)];
    let put = |all: &mut Fragments, slot, entries: Value| put(all, slot, &entries);
    if let Some(domain) = probe.opts.get("append_domain") {
        put(&mut all, Slot::AppendDomain, dict! { "append_domain" => domain });
    }
    let cwd = probe.host.read_link(Path::new("/proc/self/cwd")).unwrap_or_else(|_| "/".into());
    put(&mut all, Slot::Cwd, dict! { "cwd" => cwd.to_string_lossy().as_ref() });
    let ids = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    if let Some(path) = ids.into_iter().find(|path| probe.exists(path)) {
        let id = probe.trimmed(path).unwrap_or_default();
        put(&mut all, Slot::MachineId, dict! { "machine_id" => id });
    }
    let master = probe.opts.get("master").unwrap_or_else(|| "".into());
    put(&mut all, Slot::Master, dict! { "master" => master });
    let id = probe.opt_text("id");
    put(&mut all, Slot::ServerId, dict! { "server_id" => server_id(&id) });
    put(&mut all, Slot::Id, dict! { "id" => id });
    if let Some(line) = probe.text("/proc/cmdline") {
        put(&mut all, Slot::KernelParams, dict! { "kernelparams" => kernel_params(&line) });
    }
    put(&mut all, Slot::Locale, dict! { "locale_info" => locale(probe) });
    let path = variable(probe, "PATH").unwrap_or_default().trim().to_owned();
    let folders = Value::list(path.split(':'));
    put(&mut all, Slot::Path, dict! { "path" => path, "systempath" => folders });
    put(&mut all, Slot::Versions, versions(probe));
    if let Some(grains) = grains_file(probe) {
        put(&mut all, Slot::GrainsFile, grains);
    }
    let shell = variable(probe, "SHELL").unwrap_or_else(|| "/bin/sh".to_owned());
    put(&mut all, Slot::Shell, dict! { "shell" => shell });
    let transactional = probe.has_program("transactional-update");
    put(&mut all, Slot::Transactional, dict! { "transactional" => transactional });
    if let Some(process) = process(probe) {
        put(&mut all, Slot::Process, process);
    }
    let wanted = |name: &str| probe.opts.get(name).filter(Value::truthy);
    if wanted("grain_opts").is_some() {
        put(&mut all, Slot::Opts, dict! { "opts" => probe.opts });
    }
    put(&mut all, Slot::Package, dict! { "package" => Value::Null });
    if let Some(resources) = wanted("resources") {
        put(&mut all, Slot::Resources, dict! { "salt_resources" => resources });
    }
    let store = if wanted("use_os_truststore").is_some() { "os" } else { "certifi" };
    put(&mut all, Slot::Truststore, dict! { "ca_truststore" => store });
    all
}

fn variable(probe: &Probe<'_>, name: &str) -> Option<String> {
    probe.host.env(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned())
}

/// A number made from the id, as MySQL wants one: 31 bits of its hash.
fn server_id(id: &str) -> u32 {
    let hash = Sha256::digest(id.as_bytes());
    let tail = hash.last_chunk::<4>().copied().unwrap_or_default();
    u32::from_be_bytes(tail) & 0x7fff_ffff
}

/// Pairs of name and value; a value with a further `=` in it is lost, as in Salt.
fn kernel_params(line: &str) -> Value {
    let pair = |word: String| {
        let parts: Vec<&str> = word.split('=').collect();
        let value = match parts.as_slice() {
            [_, value] => Value::from(value.trim_matches('"')),
            _ => Value::Null,
        };
        Value::tuple([Value::from(parts.first().copied().unwrap_or_default()), value])
    };
    Value::list(shell::split(line).into_iter().map(pair))
}

fn locale(probe: &Probe<'_>) -> Value {
    let (language, encoding) = language(probe)
        .map_or((Value::Null, Value::Null), |(language, encoding)| {
            (language.into(), encoding.into())
        });
    dict! {
        "defaultlanguage" => language,
        "defaultencoding" => encoding,
        "detectedencoding" => "utf-8",
        "timezone" => zone(probe).unwrap_or_else(|| "unknown".to_owned()),
    }
}

/// Answers as a Python program does. It takes the plain C locale for C.UTF-8 (and calls that
/// American) unless `LC_ALL` insists, and so it does with a locale that is not installed.
fn language(probe: &Probe<'_>) -> Option<(String, String)> {
    let set = |name: &str| variable(probe, name).filter(|value| !value.is_empty());
    let insisted = set("LC_ALL");
    let name = insisted.clone().or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let american = Some(("en_US".to_owned(), "UTF-8".to_owned()));
    let name = name.unwrap_or_else(|| "C".to_owned());
    let (base, _) = name.split_once('@').unwrap_or((&name, ""));
    let (language, encoding) = base.split_once('.').unwrap_or((base, ""));
    let folded = encoding.to_lowercase().replace(['-', '_'], "");
    match language {
        "C" | "POSIX" if folded == "utf8" => american,
        "C" | "POSIX" => american.filter(|_| insisted.is_none()),
        _ if !is_installed(probe, language, &folded) => american.filter(|_| insisted.is_none()),
        _ => Some((language.to_owned(), encoding_name(language, encoding, &folded, &name))),
    }
}

fn is_installed(probe: &Probe<'_>, language: &str, folded: &str) -> bool {
    // An archive holds many, in a form not worth reading: taken on trust.
    probe.exists("/usr/lib/locale/locale-archive")
        || probe.is_dir(&format!("/usr/lib/locale/{language}.{folded}"))
        || (folded.is_empty() && probe.is_dir(&format!("/usr/lib/locale/{language}")))
}

fn encoding_name(language: &str, encoding: &str, folded: &str, name: &str) -> String {
    match folded {
        "utf8" => "UTF-8".to_owned(),
        "" if name.ends_with("@euro") => "ISO8859-15".to_owned(),
        "" => match language.split('_').next().unwrap_or_default() {
            "cs" | "hr" | "hu" | "pl" | "ro" | "sk" | "sl" => "ISO8859-2",
            "ru" | "uk" => "UTF-8",
            "el" => "ISO8859-7",
            "tr" => "ISO8859-9",
            "ja" => "eucJP",
            "ko" => "eucKR",
            _ => "ISO8859-1",
        }
        .to_owned(),
        _ => match folded.strip_prefix("iso8859") {
            Some(part) => format!("ISO8859-{part}"),
            None => encoding.to_owned(),
        },
    }
}

/// Returns the short name of the local time zone, now: `CEST`.
fn zone(probe: &Probe<'_>) -> Option<String> {
    let now = probe.host.now().duration_since(UNIX_EPOCH).ok()?;
    let now = Timestamp::from_second(i64::try_from(now.as_secs()).ok()?).ok()?;
    let file = |path: &Path| TimeZone::tzif("local", &probe.host.read(path).ok()?).ok();
    let named = variable(probe, "TZ").map(|name| name.trim_start_matches(':').to_owned());
    let zone = match named.as_deref() {
        None => file(Path::new("/etc/localtime")),
        Some(name) if name.starts_with('/') => file(Path::new(name)),
        Some(name) => file(&Path::new("/usr/share/zoneinfo").join(name))
            .or_else(|| TimeZone::posix(name).ok()),
    };
    let zone = zone.unwrap_or(TimeZone::UTC);
    Some(zone.to_offset_info(now).abbreviation().to_owned())
}

/// There is no Python in us. These stand for the one users' own modules would run with, so that
/// templates which look at them work; `saltversion` is the release we are compatible with.
fn versions(probe: &Probe<'_>) -> Value {
    let python = probe.host.which("python3").map(|path| path.to_string_lossy().into_owned());
    let own = probe.host.read_link(Path::new("/proc/self/exe")).unwrap_or_default();
    let folder = own.parent().map(|folder| folder.to_string_lossy().into_owned());
    let numbers = SALT_VERSION.split('.').filter_map(|part| part.parse::<i64>().ok());
    dict! {
        // Salt's words: `onedir` brings its own Python, which we do not; `pip` needs one.
        "package" => "system",
        "pythonexecutable" => python.unwrap_or_else(|| own.to_string_lossy().into_owned()),
        "pythonpath" => Vec::<Value>::new(),
        "pythonversion" => list![3, 11, 0, "final", 0],
        "saltpath" => folder.unwrap_or_default(),
        "saltversion" => SALT_VERSION,
        "saltversioninfo" => Value::list(numbers),
        "zmqversion" => "4.3.5",
    }
}

/// Who runs us. Without a name for the user Salt has none of these.
fn process(probe: &Probe<'_>) -> Option<Value> {
    let (uid, gid) = (probe.host.uid(), probe.host.gid());
    let user = probe.host.user_with_id(uid).ok()??;
    let group = probe.host.group_with_id(user.gid).ok().flatten();
    Some(dict! {
        "username" => user.name,
        "groupname" => group.map(|group| group.name).unwrap_or_default(),
        "pid" => std::process::id(),
        "gid" => gid,
        "uid" => uid,
    })
}

/// The static grains: the file `grains` beside the configuration. A broken one counts as empty.
fn grains_file(probe: &Probe<'_>) -> Option<Value> {
    let configuration = PathBuf::from(probe.opts.get("conf_file")?.as_str()?);
    let folder = if probe.host.is_dir(&configuration).unwrap_or(false) {
        configuration.as_path()
    } else {
        configuration.parent()?
    };
    let text = probe.host.read_text(&folder.join("grains")).ok()?;
    yaml::load_str(&text).ok().filter(|value| value.as_dict().is_some())
}

#[cfg(test)]
mod tests {
    use halite_host::Fake;
    use halite_value::Dict;

    use super::*;

    fn with<T>(fake: &Fake, look: impl FnOnce(&Probe<'_>) -> T) -> T {
        look(&Probe::new(fake, &Dict::new()))
    }

    #[test]
    fn ids() {
        assert_eq!(server_id("testminion"), 470_207_069);
    }

    #[test]
    fn boot_parameters() {
        let expected = list![
            Value::tuple([Value::from("root"), Value::Null]),
            Value::tuple([Value::from("quiet"), Value::Null]),
            Value::tuple([Value::from("a"), Value::from("b c")]),
        ];
        assert_eq!(kernel_params("root=UUID=12 quiet a=\"b c\"\n"), expected);
    }

    #[test]
    fn languages() {
        let check = |variables: &[(&str, &str)], archive: bool, expected: Option<(&str, &str)>| {
            let fake = Fake::new();
            for (name, value) in variables {
                fake.var(name, value);
            }
            if archive {
                fake.file("/usr/lib/locale/locale-archive", "");
            }
            let found = with(&fake, language);
            let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(found, expected, "{variables:?}");
        };
        let american = Some(("en_US", "UTF-8"));
        check(&[], false, american);
        check(&[("LANG", "C")], false, american);
        check(&[("LC_ALL", "C")], false, None);
        check(&[("LC_ALL", "C.UTF-8")], false, american);
        check(&[("LANG", "de_DE.utf8")], false, american);
        check(&[("LANG", "de_DE.utf8")], true, Some(("de_DE", "UTF-8")));
        check(&[("LANG", "C"), ("LC_ALL", "en_GB.UTF-8")], false, None);
        check(&[("LANG", "de_DE@euro")], true, Some(("de_DE", "ISO8859-15")));
        check(&[("LANG", "fr_FR.ISO-8859-1")], true, Some(("fr_FR", "ISO8859-1")));
    }

    #[test]
    fn zones() {
        let fake = Fake::new();
        assert_eq!(with(&fake, zone).unwrap(), "UTC");
        fake.var("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(with(&fake, zone).unwrap(), "CET");
        fake.advance(std::time::Duration::from_secs(180 * 86_400));
        assert_eq!(with(&fake, zone).unwrap(), "CEST");
    }

    #[test]
    fn people() {
        let fake = Fake::new();
        fake.user("ann", 1000, 100).group("users", 100, &[]).as_user(1000, 100);
        let process = with(&fake, process).unwrap();
        assert_eq!(process.get("username").unwrap(), Value::from("ann"));
        assert_eq!(process.get("groupname").unwrap(), Value::from("users"));
        fake.as_user(4242, 1);
        assert!(with(&fake, super::process).is_none());
    }

    #[test]
    fn static_grains() {
        let fake = Fake::new();
        let opts = dict! { "conf_file" => "/etc/salt/minion" };
        let probe = Probe::new(&fake, opts.as_dict().unwrap());
        assert_eq!(grains_file(&probe), None);
        fake.file("/etc/salt/grains", "roles: [web]\nn: 1\n");
        assert_eq!(grains_file(&probe), Some(dict! { "roles" => list!["web"], "n" => 1 }));
        fake.file("/etc/salt/grains", "a: [\n");
        assert_eq!(grains_file(&probe), None);
    }
}
