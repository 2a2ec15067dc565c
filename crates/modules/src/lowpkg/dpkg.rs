//! dpkg: what packages hold, and what a `.deb` file is.

use std::path::Path;

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, Value, entries};

use crate::cmd::{self, Options};

/// What a package file says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    pub name: String,
    pub version: String,
    pub arch: String,
}

fn looking() -> Options {
    Options { query: true, output_loglevel: Some("trace".into()), ..Options::default() }
}

/// Reads a package file's control fields.
pub fn bin_pkg_info(cx: &Cx, path: &str) -> Result<FileInfo> {
    if !Path::new(path).is_absolute() || !cx.host.exists(Path::new(path))? {
        return Err(Error::failed(format!("{path} does not exist on minion")));
    }
    let ran = cmd::plain(cx, ["dpkg", "-I", path], looking())?;
    if !ran.ok() {
        let gap = if ran.stderr.is_empty() { "" } else { ": " };
        return Err(Error::failed(format!("Unable to get info for {path}{gap}{}", ran.stderr)));
    }
    match FileInfo::read(&ran.stdout) {
        Ok(info) => Ok(FileInfo { name: qualified(cx, &info.name, &info.arch), ..info }),
        Err(missing) => {
            Err(Error::failed(format!("Unable to get {} for {path}", missing.join(", "))))
        }
    }
}

impl FileInfo {
    /// Picks the fields out of `dpkg -I`; the error names those that are missing.
    fn read(text: &str) -> std::result::Result<Self, Vec<&'static str>> {
        // Of a field that stands there twice the last counts; only its last word does.
        let field = |name: &str| {
            let pairs = text.lines().rev().filter_map(|line| line.trim().split_once(':'));
            let own = pairs.filter(|(key, _)| key.trim_end() == name);
            let mut words = own.map(|(_, value)| value.split_whitespace().next_back());
            words.next().flatten().unwrap_or_default().to_owned()
        };
        let info =
            Self { name: field("Package"), version: field("Version"), arch: field("Architecture") };
        let named = [("name", &info.name), ("version", &info.version), ("arch", &info.arch)];
        let empty = named.into_iter().filter(|(_, value)| value.is_empty());
        let missing: Vec<&str> = empty.map(|(name, _)| name).collect();
        if missing.is_empty() { Ok(info) } else { Err(missing) }
    }
}

/// The name with its architecture, where that is not this machine's.
pub(crate) fn qualified(cx: &Cx, name: &str, arch: &str) -> String {
    let own = cx.grain_str("osarch");
    let mixed = cx.grain_str("cpuarch") == "x86_64" && own == "amd64";
    if mixed && arch != "all" && own != arch { format!("{name}:{arch}") } else { name.to_owned() }
}

/// Name → version of installed packages.
pub(super) fn list_pkgs(cx: &Cx, names: &[String]) -> Result<Value> {
    let format = "-f=${db:Status-Status}\t${binary:Package}\t${Version}\n";
    let mut words = vec!["dpkg-query", format, "-W"];
    words.extend(names.iter().map(String::as_str));
    let ran = cmd::plain(cx, words, looking())?;
    if !ran.ok() {
        return Ok(format!("Error:  {}", ran.stderr).into());
    }
    let ret = Dict::new();
    for line in ran.stdout.lines() {
        let mut parts = line.split('\t');
        if let (Some("installed"), Some(name), Some(version)) =
            (parts.next(), parts.next(), parts.next())
        {
            ret.insert(name, version);
        }
    }
    Ok(ret.into())
}

/// The installed packages of these names, or dpkg's complaint.
fn installed(cx: &Cx, names: &[String]) -> Result<Result<Vec<String>, String>> {
    let mut words = vec!["dpkg-query", "-f=${db:Status-Status}\t${binary:Package}\n", "-W"];
    words.extend(names.iter().map(String::as_str));
    let ran = cmd::plain(cx, words, looking())?;
    if !ran.ok() {
        return Ok(Err(format!("Error:  {}", ran.stderr)));
    }
    let name = |line: &str| line.strip_prefix("installed\t").map(str::to_owned);
    Ok(Ok(ran.stdout.lines().filter_map(name).collect()))
}

fn files_of(cx: &Cx, name: &str) -> Result<Vec<String>> {
    let ran = cmd::plain(cx, ["dpkg", "-L", name], looking())?;
    Ok(ran.stdout.lines().map(str::to_owned).collect())
}

pub(super) fn file_list(cx: &Cx, names: &[String]) -> Result<Value> {
    let names = match installed(cx, names)? {
        Ok(names) => names,
        Err(complaint) => return Ok(complaint.into()),
    };
    let mut files = Vec::new();
    for name in names {
        files.extend(files_of(cx, &name)?);
    }
    files.sort();
    files.dedup();
    let ret = entries! { "errors" => Value::list(Vec::<Value>::new()), "files" => files };
    Ok(ret.into())
}

pub(super) fn file_dict(cx: &Cx, names: &[String]) -> Result<Value> {
    let names = match installed(cx, names)? {
        Ok(names) => names,
        Err(complaint) => return Ok(complaint.into()),
    };
    let packages = Dict::new();
    for name in names {
        packages.insert(name.as_str(), files_of(cx, &name)?);
    }
    let none = Value::list(Vec::<Value>::new());
    Ok(entries! { "errors" => none, "packages" => packages }.into())
}

const FORMAT: &str = "-f=package:${Package}\\nrevision:${binary:Revision}\\n\
    architecture:${Architecture}\\nmaintainer:${Maintainer}\\nsummary:${Summary}\\n\
    source:${source:Package}\\nversion:${Version}\\nsection:${Section}\\n\
    installed_size:${Installed-size}\\nsize:${Size}\\nMD5:${MD5sum}\\nSHA1:${SHA1}\\n\
    SHA256:${SHA256}\\norigin:${Origin}\\nhomepage:${Homepage}\\nstatus:${db:Status-Abbrev}\\n\
    install_date:${db-fsys:Last-Modified}\\ndescription:${Description}\\n\\n*/~^\\\\*\\n";

/// What dpkg knows of packages.
pub fn info(cx: &Cx, names: &[String], failhard: bool) -> Result<Dict> {
    let mut words = vec!["dpkg-query", "-W", FORMAT];
    words.extend(names.iter().map(String::as_str));
    let ran = cmd::plain(cx, words, looking())?;
    if !ran.ok() {
        if failhard {
            let message = format!("Error getting packages information: {}", ran.stderr);
            return Err(Error::failed(message));
        }
        return Ok(Dict::new());
    }
    let ret = Dict::new();
    for part in ran.stdout.split("\n*/~^\\*").filter(|part| !part.trim().is_empty()) {
        let part = part.trim_start_matches(['\r', '\n']);
        let (fields, description) = part.split_once("\ndescription:").unwrap_or((part, ""));
        let info = Dict::new();
        for line in fields.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = if key == "install_date" { super::utc(value) } else { value.to_owned() };
            if !value.is_empty() {
                info.insert(key, value);
            }
        }
        info.insert("description", description);
        info.remove("installed_size");
        let name = info.get("package").unwrap_or_default().to_str();
        let licences = licences(cx, &name);
        if !licences.is_empty() {
            info.insert("license", licences);
        }
        ret.insert(name, info);
    }
    Ok(ret)
}

fn licences(cx: &Cx, name: &str) -> String {
    let path = format!("/usr/share/doc/{name}/copyright");
    let text = cx.host.read_text(Path::new(&path)).unwrap_or_default();
    let mut found: Vec<&str> =
        text.split('\n').filter_map(|line| line.strip_prefix("License:")).map(str::trim).collect();
    found.sort_unstable();
    found.dedup();
    found.join(", ")
}
