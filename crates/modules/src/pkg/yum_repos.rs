//! `.repo` files: sections of `key=value`, as yum, dnf and zypper keep their sources.
//!
//! Comments belong to the section above them; what we do not change is written back.

use std::path::Path;

use halite_spec::{Cx, Error, Result, host::Write};
use halite_value::{Dict, List, Value, entries};

use crate::cmd;

const LINKS: [&str; 3] = ["baseurl", "mirrorlist", "metalink"];

/// The head of the file and its sections.
struct RepoFile {
    header: String,
    sections: Dict,
}

fn parse(text: &str) -> RepoFile {
    let (mut header, sections) = (String::new(), Dict::new());
    let mut current: Option<Dict> = None;
    let mut key: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(comment) = trimmed.strip_prefix(['#', ';']) {
            match &current {
                None => header.push_str(&format!("{trimmed}\n")),
                Some(section) => {
                    if let Value::List(list) =
                        section.get_or_insert_with("comments", || List::new().into())
                    {
                        list.push(comment.trim_start());
                    }
                }
            }
        } else if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        {
            let section = Dict::new();
            sections.insert(name, &section);
            current = Some(section);
            key = None;
        } else if line.starts_with([' ', '\t']) && !trimmed.is_empty() {
            if let (Some(section), Some(key)) = (&current, &key) {
                let old = section.get(key.as_str()).unwrap_or_default();
                section.insert(key.as_str(), format!("{old}\n{trimmed}"));
            }
        } else if let Some((name, value)) = trimmed.split_once(['=', ':'])
            && let Some(section) = &current
        {
            let name = name.trim().to_lowercase();
            section.insert(name.as_str(), value.trim());
            key = Some(name);
        }
    }
    RepoFile { header, sections }
}

fn written(file: &RepoFile) -> String {
    let mut text = file.header.clone();
    for (name, section) in &file.sections {
        text.push_str(&format!("[{name}]\n"));
        let mut comments = String::new();
        for (key, value) in section.as_dict().into_iter().flatten() {
            if key.to_str() == "comments" {
                let lines = value.items_of_sequence().unwrap_or_else(|| vec![value.clone()]);
                for line in lines {
                    comments
                        .push_str(&format!("# {}\n", line.to_str().trim_start_matches(['#', ' '])));
                }
                continue;
            }
            let shown = match &value {
                Value::Bool(flag) => if *flag { "1" } else { "0" }.to_owned(),
                other => other.to_str().replace('\n', "\n "),
            };
            text.push_str(&format!("{key}={shown}\n"));
        }
        text.push_str(&comments);
        text.push('\n');
    }
    text
}

/// The folders repositories are looked for in.
fn folders(cx: &Cx, extra: &Dict) -> Vec<String> {
    if let Some(given) = extra.get("basedir").filter(Value::truthy) {
        return cmd::split_input(&given);
    }
    for path in ["/etc/yum/yum.conf", "/etc/yum.conf", "/etc/dnf/dnf.conf", "/etc/tdnf/tdnf.conf"] {
        if let Ok(text) = cx.host.read_text(Path::new(path)) {
            let main = parse(&text).sections.get("main");
            if let Some(folders) = main.and_then(|main| main.get("reposdir")) {
                return cmd::split_input(&folders);
            }
            break;
        }
    }
    ["/etc/yum/repos.d", "/etc/yum.repos.d"].map(str::to_owned).into()
}

/// Name → options, with the file each stands in.
pub(super) fn list(cx: &Cx, folders: &[String]) -> Result<Dict> {
    let repos = Dict::new();
    for folder in folders {
        let names = match cx.host.read_dir(Path::new(folder)) {
            Ok(names) => names,
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(error.into()),
        };
        for name in names {
            let path = format!("{folder}/{}", name.to_string_lossy());
            if !path.ends_with(".repo") {
                continue;
            }
            for (name, section) in &parse(&cx.host.read_text(Path::new(&path))?).sections {
                if let Value::Dict(section) = &section {
                    section.insert("file", path.as_str());
                }
                repos.insert(name, section);
            }
        }
    }
    Ok(repos)
}

pub(super) fn all(cx: &Cx, extra: &Dict) -> Result<Dict> {
    list(cx, &folders(cx, extra))
}

/// `copr:owner/project` has a name of its own.
fn full_name(repo: &str) -> String {
    match repo.strip_prefix("copr:").and_then(|rest| rest.split_once('/')) {
        Some((owner, project)) => format!("copr:copr.fedorainfracloud.org:{owner}:{project}"),
        None => repo.to_owned(),
    }
}

pub(super) fn get(cx: &Cx, repo: &str, extra: &Dict) -> Result<Dict> {
    let found = all(cx, extra)?.get(full_name(repo).as_str());
    let found = found.and_then(|repo| repo.as_dict().cloned()).unwrap_or_default();
    found.remove("file");
    Ok(found)
}

pub(super) fn delete(cx: &Cx, repo: &str, extra: &Dict) -> Result<String> {
    let repo = full_name(repo);
    let folders = folders(cx, extra);
    let repos = list(cx, &folders)?;
    let file_of = |repo: &Value| repo.get("file").unwrap_or_default().to_str();
    let Some(found) = repos.get(repo.as_str()) else {
        let shown = Value::list(folders).repr();
        return Ok(format!("Error: the {repo} repo does not exist in {shown}"));
    };
    let path = file_of(&found);
    let alone = repos.values().iter().filter(|other| file_of(other) == path).count() == 1;
    if alone {
        cx.host.remove_file(Path::new(path.as_str()))?;
        return Ok(format!("File {path} containing repo {repo} has been removed"));
    }
    let file = parse(&cx.host.read_text(Path::new(path.as_str()))?);
    file.sections.remove(repo.as_str());
    cx.host.write(Path::new(path.as_str()), written(&file).as_bytes(), &Write::default())?;
    Ok(format!("Repo {repo} has been removed from {path}"))
}

/// The settings as they will stand in the file.
pub(super) fn given(settings: &Dict) -> Dict {
    let given = Dict::new();
    for (key, value) in settings {
        let name = key.to_str();
        let ours = name.starts_with("__")
            || matches!(name.as_str(), "saltenv" | "basedir" | "strict_config");
        match value {
            _ if ours => {}
            Value::Bool(flag) => {
                given.insert(key, if flag { "1" } else { "0" });
            }
            Value::Int(_) | Value::Float(_) => {
                given.insert(key, value.to_str());
            }
            value if value.truthy() => {
                given.insert(key, value);
            }
            _ => {}
        }
    }
    given
}

/// The parts of one dict the other has, too.
pub(super) fn only(dict: &Dict, other: &Dict) -> Dict {
    other.keys().into_iter().map(|key| (key.clone(), dict.get(&key).unwrap_or_default())).collect()
}

pub(super) fn modify(cx: &Cx, repo: &str, settings: &Dict) -> Result<Dict> {
    let repo = full_name(repo);
    let given = Dict::new();
    let mut gone: Vec<String> = Vec::new();
    for (key, value) in settings {
        let name = key.to_str();
        if name.starts_with("__")
            || matches!(name.as_str(), "saltenv" | "basedir" | "strict_config")
        {
            continue;
        }
        if value.truthy() || value == Value::Int(0) || value == Value::Bool(false) {
            given.insert(key, value);
        } else {
            gone.push(name.to_string());
        }
    }
    let links: Vec<&str> = LINKS.into_iter().filter(|link| given.contains(*link)).collect();
    if links.len() > 1 {
        return Err(Error::invalid(format!(
            "One and only one of {} can be used",
            LINKS.join(", ")
        )));
    }
    if let Some(link) = links.first() {
        gone.extend(LINKS.iter().filter(|other| *other != link).map(|other| (*other).to_owned()));
    }
    if gone.iter().any(|name| name == "name") {
        return Err(Error::invalid("The repo name cannot be deleted"));
    }
    let folders = folders(cx, settings);
    let repos = list(cx, &folders)?;
    let (path, file) = match repos.get(repo.as_str()) {
        Some(found) => {
            let path = found.get("file").unwrap_or_default().to_string();
            let file = parse(&cx.host.read_text(Path::new(&path))?);
            (path, file)
        }
        None => {
            let create = "The repo does not exist and needs to be created, but";
            let mut folder = None;
            for one in &folders {
                if cx.host.is_dir(Path::new(one))? {
                    folder = Some(one);
                    break;
                }
            }
            let Some(folder) = folder else {
                let shown = Value::list(folders.clone()).repr();
                return Err(Error::invalid(format!(
                    "{create} none of the following basedir directories exist: {shown}"
                )));
            };
            if !given.contains("name") {
                return Err(Error::invalid(format!("{create} a name was not given")));
            }
            if links.is_empty() {
                return Err(Error::invalid(format!(
                    "{create} none of {} was given",
                    LINKS.join(", ")
                )));
            }
            let sections = entries! { repo.as_str() => Value::dict() };
            (format!("{folder}/{repo}.repo"), RepoFile { header: String::new(), sections })
        }
    };
    if let Some(Value::Dict(section)) = file.sections.get(repo.as_str()) {
        for name in &gone {
            section.remove(name.as_str());
        }
        section.update(&given);
    }
    cx.host.write(Path::new(&path), written(&file).as_bytes(), &Write::default())?;
    for (_, section) in &file.sections {
        if let Value::Dict(section) = section {
            section.remove("comments");
        }
    }
    Ok(entries! { path => file.sections })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let text = "# head\n[base]\nname=Base\nbaseurl = http://a\n  http://b\n# note\nenabled=1\n\n\
                    [extras]\nname=Extras\n";
        let file = parse(text);
        let base = file.sections.get("base").unwrap();
        assert_eq!(base.get_str("baseurl").unwrap(), "http://a\nhttp://b");
        assert_eq!(base.get_str("enabled").unwrap(), "1");
        let back = written(&file);
        assert!(
            back.starts_with(
                "# head\n[base]\nname=Base\nbaseurl=http://a\n http://b\nenabled=1\n# note\n"
            ),
            "{back}"
        );
    }
}
