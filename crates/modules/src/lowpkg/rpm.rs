//! rpm: what packages hold, and what an `.rpm` file is.

use std::path::Path;

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, List, Value, dict, entries};

use crate::{
    cmd::{self, Options, Ran},
    pkg::version,
};

/// Fields of a package in one line, as Salt asks for them.
pub const FORMAT: &str = "%{NAME}_|-%{EPOCH}_|-%{VERSION}_|-%{RELEASE}_|-%{ARCH}_|-\
                          %{REPOID}_|-%{INSTALLTIME}";

/// A package as [`FORMAT`] shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// With the architecture, where that is not this machine's.
    pub name: String,
    /// `[epoch:]version[-release]`
    pub version: String,
    pub arch: String,
    pub repoid: String,
    pub installed: Option<i64>,
}

const X86_64: [&str; 4] = ["x86_64", "athlon", "amd64", "ia32e"];
const X86: [&str; 4] = ["i386", "i486", "i586", "i686"];

/// Tells whether rpm knows an architecture of this name.
pub fn is_arch(arch: &str) -> bool {
    const OTHERS: [&str; 26] = [
        "alpha",
        "alphaev4",
        "alphaev45",
        "alphaev5",
        "alphaev56",
        "alphapca56",
        "alphaev6",
        "alphaev67",
        "alphaev68",
        "alphaev7",
        "sparc",
        "sparcv8",
        "sparcv9",
        "sparc64",
        "ppc",
        "ppc64",
        "ppc64le",
        "ppc64pseries",
        "ppc64iseries",
        "s390",
        "s390x",
        "armv7l",
        "armv7hl",
        "aarch64",
        "noarch",
        "ia64",
    ];
    X86_64.contains(&arch) || X86.contains(&arch) || OTHERS.contains(&arch)
}

/// The name with its architecture, where that is not this machine's.
pub fn resolve_name(name: &str, arch: &str, osarch: &str) -> String {
    let same = arch == osarch
        || arch == "noarch"
        || (X86.contains(&arch) && X86.contains(&osarch))
        || arch == "(none)"
        || !is_arch(arch);
    if same { name.to_owned() } else { format!("{name}.{arch}") }
}

/// Reads a line of [`FORMAT`].
pub fn parse(line: &str, osarch: &str) -> Option<Package> {
    let parts: Vec<&str> = line.trim().split("_|-").collect();
    let [name, epoch, ver, release, arch, repoid, time] = *parts.as_slice() else { return None };
    let mut full = ver.to_owned();
    if !release.is_empty() {
        full = format!("{full}-{release}");
    }
    if !matches!(epoch, "(none)" | "0" | "") {
        full = format!("{epoch}:{full}");
    }
    Some(Package {
        name: resolve_name(name, arch, osarch),
        version: full,
        arch: arch.to_owned(),
        repoid: repoid.to_owned(),
        installed: time.parse().ok(),
    })
}

fn rpm(cx: &Cx, extra: &Dict, words: &[&str]) -> Result<Ran> {
    let root = extra.get("root").filter(Value::truthy).map(|root| root.to_string());
    let mut all = vec!["rpm".to_owned()];
    if let Some(root) = root {
        all.extend(["--root".into(), root]);
    }
    all.extend(words.iter().map(|word| (*word).to_owned()));
    let how = Options {
        query: true,
        output_loglevel: Some("trace".into()),
        ignore_retcode: true,
        ..Options::default()
    };
    cmd::plain(cx, all, how)
}

/// Everything installed.
pub fn installed(cx: &Cx, extra: &Dict) -> Result<Vec<Package>> {
    let format = format!("{}\n", FORMAT.replace("%{REPOID}", "(none)"));
    let ran = rpm(cx, extra, &["-qa", "--nodigest", "--nosignature", "--queryformat", &format])?;
    let osarch = cx.grain_str("osarch");
    let found = ran.stdout.lines().filter_map(|line| parse(line, &osarch));
    Ok(found.filter(|package| !package.name.starts_with("gpg-pubkey")).collect())
}

/// Reads a package file's header.
pub fn bin_pkg_info(cx: &Cx, path: &str) -> Result<Option<Package>> {
    if !cx.host.exists(Path::new(path))? || !Path::new(path).is_absolute() {
        return Err(Error::failed(format!("{path} does not exist on minion")));
    }
    let format = FORMAT.replace("%{REPOID}", "none");
    let ran = rpm(cx, &Dict::new(), &["-qp", "--queryformat", &format, path])?;
    Ok(parse(&ran.stdout, &cx.grain_str("osarch")))
}

pub(super) fn list_pkgs(cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
    let mut words = vec![if names.is_empty() { "-qa" } else { "-q" }];
    words.extend(["--queryformat", "%{NAME} %{VERSION}\\n"]);
    words.extend(names.iter().map(String::as_str));
    let ret = Dict::new();
    for line in rpm(cx, extra, &words)?.stdout.lines() {
        if !line.contains("is not installed")
            && let Some((name, version)) = line.split_once(' ')
        {
            ret.insert(name, version);
        }
    }
    Ok(ret.into())
}

pub(super) fn file_list(cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
    let mut words = vec![if names.is_empty() { "-qla" } else { "-ql" }];
    words.extend(names.iter().map(String::as_str));
    let files: Vec<String> = rpm(cx, extra, &words)?.stdout.lines().map(str::to_owned).collect();
    Ok(entries! { "errors" => List::new(), "files" => files }.into())
}

pub(super) fn file_dict(cx: &Cx, names: &[String], extra: &Dict) -> Result<Value> {
    let mut words = vec![if names.is_empty() { "-qa" } else { "-q" }];
    words.extend(["--queryformat", "%{NAME} %{VERSION}\\n"]);
    words.extend(names.iter().map(String::as_str));
    let (errors, packages) = (List::new(), Dict::new());
    for line in rpm(cx, extra, &words)?.stdout.lines() {
        if line.contains("is not installed") {
            errors.push(line);
        } else if let Some(name) = line.split_whitespace().next() {
            let files: Vec<String> =
                rpm(cx, extra, &["-ql", name])?.stdout.lines().map(str::to_owned).collect();
            packages.insert(name, files);
        }
    }
    Ok(entries! { "errors" => errors, "packages" => packages }.into())
}

/// The package that owns each path, empty where none does.
pub fn owner(cx: &Cx, paths: &[String], extra: &Dict) -> Result<Value> {
    let ret = Dict::new();
    for path in paths {
        let ran = rpm(cx, extra, &["-qf", "--queryformat", "%{name}", path])?;
        let owner = if ran.stdout.to_lowercase().contains("not owned") { "" } else { &ran.stdout };
        ret.insert(path.as_str(), owner);
    }
    Ok(match ret.len() {
        0 => "".into(),
        1 => ret.values().swap_remove(0),
        _ => ret.into(),
    })
}

/// Files that differ from what the package brought: path → what differs.
pub fn verify(cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
    let list =
        |name: &str| extra.get(name).map(|given| cmd::split_input(&given)).unwrap_or_default();
    let ignored = list("ignore_types");
    let options: Vec<String> =
        list("verify_options").iter().map(|option| format!("--{option}")).collect();
    let mut words: Vec<&str> = options.iter().map(String::as_str).collect();
    words.push(if names.is_empty() { "-Va" } else { "-V" });
    words.extend(names.iter().map(String::as_str));
    let ran = rpm(cx, extra, &words)?;
    if ran.stdout.trim().is_empty() && !ran.ok() {
        let detail =
            if ran.stderr.is_empty() { String::new() } else { format!(": {}", ran.stderr) };
        return Err(Error::failed(format!("Failed to verify package(s){detail}")));
    }
    Ok(differing(&ran.stdout, &ignored))
}

/// Reads `rpm -V`: `S.5....T.  c /etc/x`, `missing     /etc/y`.
fn differing(text: &str, ignored: &[String]) -> Dict {
    const MARKS: [(u8, &str); 9] = [
        (b'S', "size"),
        (b'M', "mode"),
        (b'5', "md5sum"),
        (b'D', "device major/minor number"),
        (b'L', "readlink path"),
        (b'U', "user"),
        (b'G', "group"),
        (b'T', "mtime"),
        (b'P', "capabilities"),
    ];
    let ret = Dict::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let missing = line.contains("missing");
        let line = if missing { format!(" {line}") } else { line.to_owned() };
        let Some(path) = line.get(13..) else { continue };
        let kind = match line.as_bytes().get(11) {
            Some(b'c') => Some("config"),
            Some(b'd') => Some("doc"),
            Some(b'g') => Some("ghost"),
            Some(b'l') => Some("license"),
            Some(b'r') => Some("readme"),
            _ => None,
        };
        if kind.is_some_and(|kind| ignored.iter().any(|own| own == kind)) {
            continue;
        }
        let found = Dict::new();
        if missing {
            found.insert("missing", true);
        } else {
            let marks = MARKS
                .iter()
                .enumerate()
                .filter(|(at, (mark, _))| line.as_bytes().get(*at) == Some(mark))
                .map(|(_, (_, word))| *word);
            found.insert("mismatch", Value::list(marks));
        }
        if let Some(kind) = kind {
            found.insert("type", kind);
        }
        ret.insert(path, found);
    }
    ret
}

/// What rpm knows of packages; the newest version of each.
pub fn info(cx: &Cx, names: &[String], extra: &Dict) -> Result<Dict> {
    const FIELDS: [(&str, &str); 22] = [
        ("name", "name: %{NAME}\\n"),
        ("relocations", "relocations: %|PREFIXES?{[%{PREFIXES} ]}:{(not relocatable)}|\\n"),
        ("version", "version: %{VERSION}\\n"),
        ("vendor", "vendor: %{VENDOR}\\n"),
        ("release", "release: %{RELEASE}\\n"),
        ("epoch", "%|EPOCH?{epoch: %{EPOCH}\\n}|"),
        ("build_date_time_t", "build_date_time_t: %{BUILDTIME}\\n"),
        ("build_date", "build_date: %{BUILDTIME}\\n"),
        (
            "install_date_time_t",
            "install_date_time_t: %|INSTALLTIME?{%{INSTALLTIME}}:{(not installed)}|\\n",
        ),
        ("install_date", "install_date: %|INSTALLTIME?{%{INSTALLTIME}}:{(not installed)}|\\n"),
        ("build_host", "build_host: %{BUILDHOST}\\n"),
        ("group", "group: %{GROUP}\\n"),
        ("source_rpm", "source_rpm: %{SOURCERPM}\\n"),
        ("size", "size: %{LONGSIZE}\\n"),
        ("arch", "arch: %{ARCH}\\n"),
        ("license", "%|LICENSE?{license: %{LICENSE}\\n}|"),
        (
            "signature",
            "signature: %|DSAHEADER?{%{DSAHEADER:pgpsig}}:{%|RSAHEADER?{%{RSAHEADER:pgpsig}}:{(none)}|}|\\n",
        ),
        ("packager", "%|PACKAGER?{packager: %{PACKAGER}\\n}|"),
        ("url", "%|URL?{url: %{URL}\\n}|"),
        ("summary", "summary: %{SUMMARY}\\n"),
        ("edition", "edition: %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"),
        ("description", "description:\\n%{DESCRIPTION}\\n"),
    ];
    let wanted = extra.get("attr").filter(Value::truthy).map(|attr| cmd::split_input(&attr));
    let asked = |name: &str| {
        wanted.as_ref().is_none_or(|wanted| {
            wanted.iter().any(|own| own == name) || name == "name" || name == "edition"
        })
    };
    let format: String =
        FIELDS.iter().filter(|(name, _)| asked(name)).map(|(_, text)| *text).collect();
    let format = format!("{format}-----\\n");
    let mut words = vec![if names.is_empty() { "-qa" } else { "-q" }];
    words.extend(names.iter().map(String::as_str));
    words.extend(["--queryformat", &format]);
    let ran = rpm(cx, extra, &words)?;
    let mut found: Vec<Dict> = ran
        .stdout
        .split("-----\n")
        .chain(None)
        .map(str::trim)
        .filter(|text| !text.is_empty() && *text != "-----")
        .map(|text| described(text.trim_end_matches("-----"), asked("description")))
        .collect();
    let edition = |info: &Dict| info.get("edition").unwrap_or_default().to_string();
    found.sort_by(|one, other| version::compare_rpm(&edition(other), &edition(one)));
    let all_versions = extra.get("all_versions").is_some_and(|flag| flag.truthy());
    let ret = Dict::new();
    for info in found {
        let Some(name) = info.remove("name").map(|name| name.to_str()) else { continue };
        if name.starts_with("gpg-pubkey") {
            continue;
        }
        if wanted.as_ref().is_some_and(|wanted| !wanted.iter().any(|own| own == "edition")) {
            info.remove("edition");
        }
        if all_versions {
            if let Value::List(list) = ret.get_or_insert_with(name, || List::new().into()) {
                list.push(info);
            }
        } else {
            ret.get_or_insert_with(name, || info.into());
        }
    }
    Ok(ret)
}

fn described(text: &str, with_description: bool) -> Dict {
    let info = Dict::new();
    let (fields, description) = text.split_once("\ndescription:\n").unwrap_or((text, ""));
    for line in fields.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "build_date" | "install_date" => {
                let time = super::utc(value);
                if !time.is_empty() {
                    info.insert(key, time);
                }
            }
            "build_date_time_t" | "install_date_time_t" => {
                if let Ok(time) = value.parse::<i64>() {
                    info.insert(key, time);
                }
            }
            _ if !value.is_empty() => {
                info.insert(key, value);
            }
            _ => {}
        }
    }
    if with_description {
        info.insert("description", description.trim_end());
    }
    info
}

/// Files changed since they were installed: path → kinds of change.
pub(super) fn modified(cx: &Cx, names: &[String], flags: &Dict) -> Result<Value> {
    const KINDS: [&str; 9] =
        ["size", "mode", "checksum", "device", "symlink", "owner", "group", "time", "capabilities"];
    let mut words = vec!["-Va"];
    words.extend(names.iter().map(String::as_str));
    let ran = rpm(cx, flags, &words)?;
    let code = ran.retcode.unwrap_or_default();
    if code > 1 {
        return Ok(dict! { "pid" => ran.pid, "retcode" => code, "stderr" => ran.stderr });
    }
    let ret = Dict::new();
    for line in ran.stdout.lines().filter(|_| code == 1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (marks, config, path) = match words.as_slice() {
            [marks, _, path] => (*marks, true, *path),
            [marks, path] => (*marks, false, *path),
            _ => continue,
        };
        let mut kinds: Vec<&str> = marks
            .chars()
            .zip(KINDS)
            .filter(|(mark, _)| *mark != '.')
            .map(|(_, kind)| kind)
            .collect();
        kinds.extend(config.then_some("config"));
        let fits = flags.into_iter().all(|(name, wanted)| {
            let name = name.to_str();
            name.starts_with('_')
                || name == "root"
                || wanted.truthy() == kinds.contains(&name.as_str())
        });
        if fits {
            ret.insert(path, Value::list(kinds));
        }
    }
    Ok(ret.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let package = parse("bash_|-(none)_|-5.1_|-1.el9_|-x86_64_|-(none)_|-1700000000", "x86_64");
        let package = package.unwrap();
        assert_eq!((&*package.name, &*package.version), ("bash", "5.1-1.el9"));
        assert_eq!(package.installed, Some(1_700_000_000));
        let package = parse("glibc_|-2_|-2.34_|-1_|-i686_|-(none)_|-x", "x86_64").unwrap();
        assert_eq!((&*package.name, &*package.version), ("glibc.i686", "2:2.34-1"));
        assert_eq!(parse("no package", "x86_64"), None);
    }

    #[test]
    fn verification() {
        let text = "S.5....T.  c /etc/httpd/conf/httpd.conf\nmissing     /var/x\n";
        let found = differing(text, &[]);
        let conf = found.get("/etc/httpd/conf/httpd.conf").unwrap();
        assert_eq!(
            conf,
            dict! { "mismatch" => halite_value::list!["size", "md5sum", "mtime"], "type" => "config" }
        );
        assert_eq!(found.get("/var/x"), Some(dict! { "missing" => true }));
        assert_eq!(differing(text, &["config".into()]).len(), 1);
    }
}
