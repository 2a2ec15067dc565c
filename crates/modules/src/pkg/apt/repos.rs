//! Adding, changing and removing apt's sources.

use std::path::{Path, PathBuf};

use halite_spec::{Cx, Error, Result};
use halite_value::{Dict, List, Value, entries};

use super::{
    call, keys, options,
    sources::{self, Line, MAIN, Section, Source, truth},
};
use crate::{cmd, pkg::Provider};

fn is_ubuntu(cx: &Cx) -> bool {
    matches!(cx.grain_str("os").as_str(), "Ubuntu" | "Mint" | "neon")
}

fn text_of(options: &Dict, name: &str) -> Option<String> {
    options.get(name).filter(|value| !value.is_null()).map(|value| value.to_string())
}

/// The source line of a `ppa:owner/name`; other texts are lines already.
pub(crate) fn line_of(cx: &Cx, repo: &str, options: &Dict) -> Result<String> {
    let Some(ppa) = repo.strip_prefix("ppa:").filter(|_| is_ubuntu(cx)) else {
        return Ok(repo.to_owned());
    };
    let dist = cx.grain_str("oscodename");
    let (owner, name) = split_ppa(ppa)?;
    Ok(match text_of(options, "ppa_auth") {
        Some(auth) => format!(
            "deb https://{auth}@private-ppa.launchpad.net/{owner}/{name}/ubuntu {dist} main"
        ),
        None => format!("deb http://ppa.launchpad.net/{owner}/{name}/ubuntu {dist} main"),
    })
}

fn split_ppa(ppa: &str) -> Result<(&str, &str)> {
    ppa.split_once('/').ok_or_else(|| {
        Error::failed(format!(
            "Unable to get PPA info from argument. Expected format \"<PPA_OWNER>/<PPA_NAME>\" \
             (e.g. saltstack/salt) not found.  Received '{ppa}' instead."
        ))
    })
}

/// Salt's dict of one source, for one of its URIs, suites and types.
fn described(source: &Source, uri: &str, suite: &str, kind: &str) -> Dict {
    let line = match source {
        Source::Line(line) => line.text.trim().to_owned(),
        Source::Section(_) => Line {
            disabled: source.disabled(),
            kind: kind.to_owned(),
            architectures: source.architectures(),
            signedby: source.signedby().unwrap_or_default(),
            uri: uri.to_owned(),
            dist: suite.to_owned(),
            comps: source.comps(),
            ..Line::default()
        }
        .written(),
    };
    entries! {
        "file" => source.file(), "comps" => Value::list(source.comps()),
        "disabled" => source.disabled(), "enabled" => !source.disabled(), "dist" => suite,
        "suites" => Value::list(source.suites()), "type" => kind,
        "types" => Value::list(source.types()), "uri" => uri,
        "uris" => Value::list(source.uris()), "line" => line,
        "architectures" => Value::list(source.architectures()), "signedby" => source.signedby(),
    }
}

/// URI → list of sources.
pub(super) fn list(cx: &Cx) -> Result<Dict> {
    Ok(listed(&sources::load(cx)?))
}

fn listed(sources: &[Source]) -> Dict {
    let repos = Dict::new();
    for source in sources.iter().filter(|source| !source.invalid()) {
        for uri in source.uris() {
            for suite in source.suites() {
                for kind in source.types() {
                    let list = repos.get_or_insert_with(uri.as_str(), || List::new().into());
                    if let Value::List(list) = list {
                        list.push(described(source, &uri, &suite, &kind));
                    }
                }
            }
        }
    }
    repos
}

fn same_uri(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The source a line describes, as it is now; empty if there is none.
pub(super) fn get(cx: &Cx, repo: &str, options: &Dict) -> Result<Dict> {
    let repo = line_of(cx, repo, options)?;
    found(&sources::load(cx)?, &Line::parse(&repo, MAIN)?)
}

/// Tells whether there is a source for the very architectures the line names: what `delete` removes.
/// `get` does not look at them, and `pkgrepo.managed` relies on that.
pub(super) fn holds(cx: &Cx, repo: &str, options: &Dict) -> Result<bool> {
    let wanted = Line::parse(&line_of(cx, repo, options)?, MAIN)?;
    let sources = sources::load(cx)?.into_iter();
    let same = sources.filter(|source| same_names(&source.architectures(), &wanted.architectures));
    Ok(!found(&same.collect::<Vec<_>>(), &wanted)?.is_empty())
}

/// Whether both hold the same names, in any order.
fn same_names(one: &[String], other: &[String]) -> bool {
    let all_in = |one: &[String], other: &[String]| one.iter().all(|name| other.contains(name));
    all_in(one, other) && all_in(other, one)
}

fn found(sources: &[Source], wanted: &Line) -> Result<Dict> {
    for (_, list) in &listed(sources) {
        for found in list.items_of_sequence().unwrap_or_default() {
            let Value::Dict(found) = found else { continue };
            let text = |key: &str| found.get(key).unwrap_or_default().to_str();
            let fits = text("type") == *wanted.kind
                && same_uri(&text("uri"), &wanted.uri)
                && text("dist") == *wanted.dist;
            if !fits {
                continue;
            }
            let comps =
                found.get("comps").and_then(|comps| comps.items_of_sequence()).unwrap_or_default();
            if wanted.comps.is_empty()
                || wanted.comps.iter().any(|comp| comps.iter().any(|own| *own == **comp))
            {
                return Ok(found);
            }
        }
    }
    Ok(Dict::new())
}

/// Removes a source; tells what was done.
pub(super) fn delete(cx: &Cx, repo: &str, options: &Dict) -> Result<String> {
    let is_ppa = repo.starts_with("ppa:") && is_ubuntu(cx);
    let line = line_of(cx, repo, options)?;
    let wanted = Line::parse(&line, MAIN)?;
    let all = sources::load(cx)?;
    let mut kept: Vec<Source> = Vec::new();
    let mut touched: Vec<String> = Vec::new();
    for mut source in all {
        let is_it = !source.invalid()
            && source.uris().iter().any(|uri| same_uri(uri, &wanted.uri))
            && source.suites().contains(&wanted.dist)
            && ((source.types().contains(&wanted.kind)
                && same_names(&source.architectures(), &wanted.architectures))
                || (is_ppa && wanted.kind == "deb" && source.types() == ["deb-src"]));
        if !is_it {
            kept.push(source);
            continue;
        }
        let comps = source.comps();
        let left: Vec<String> =
            comps.iter().filter(|comp| !wanted.comps.contains(comp)).cloned().collect();
        let all_gone = left.is_empty() && wanted.comps.iter().all(|comp| comps.contains(comp));
        if all_gone {
            let file = source.file().to_owned();
            touched.push(file);
            let suites: Vec<String> =
                source.suites().into_iter().filter(|suite| *suite != wanted.dist).collect();
            if !suites.is_empty() {
                source.set_suites(&suites);
                kept.push(source);
            }
        } else if left.len() < comps.len() {
            touched.push(source.file().to_owned());
            source.set_comps(&left);
            if !left.is_empty() {
                kept.push(source);
            }
        } else {
            kept.push(source);
        }
    }
    touched.dedup();
    if touched.is_empty() {
        return Err(Error::failed(format!("Repo {line} doesn't exist in the sources.list(s)")));
    }
    sources::save(cx, &kept)?;
    let mut told = String::new();
    for file in touched {
        let left = kept.iter().any(|source| source.file() == file && !source.invalid());
        if !left && file.contains("sources.list.d/") && cx.host.is_file(Path::new(&file))? {
            cx.host.remove_file(Path::new(&file))?;
            told.push_str(&format!("File {file} containing repo '{line}' has been removed."));
        } else {
            if !kept.iter().any(|source| source.file() == file) {
                cx.host.write(Path::new(&file), b"", &halite_spec::host::Write::default())?;
            }
            told.push_str(&format!("Repo '{line}' has been removed from {file}.\n"));
        }
    }
    super::Apt.refresh_db(cx, &Dict::new())?;
    Ok(told)
}

/// Fetches the key a source is signed with.
fn bring_key(cx: &Cx, settings: &Dict, signedby: Option<&Path>, aptkey: bool) -> Result<()> {
    let saltenv = text_of(settings, "saltenv").unwrap_or_else(|| cx.saltenv());
    if settings.contains("keyid") {
        let server = text_of(settings, "keyserver").filter(|server| !server.is_empty());
        let given = settings.get("keyid").unwrap_or_default();
        let ids = given.items_of_sequence().unwrap_or_else(|| vec![given.clone()]);
        let (Some(server), true) = (server, given.truthy()) else {
            return Err(Error::raised("NameError", "both keyserver and keyid options required."));
        };
        for id in ids {
            // YAML reads an id of digits as a number.
            let id = match id {
                Value::Int(number) => format!("{number:#x}"),
                other => other.to_string(),
            };
            keys::receive(cx, &id, &server, signedby, aptkey)?;
        }
        return Ok(());
    }
    if let Some(url) = text_of(settings, "key_url") {
        let cached = cx.files.cache(&url, &saltenv)?;
        let file = cached.ok_or_else(|| Error::failed(format!("Error: file not found: {url}")))?;
        if !aptkey {
            let folder = signedby.and_then(Path::parent).map(Path::to_owned);
            let name = signedby.and_then(Path::file_name).map(PathBuf::from);
            let added = keys::add_file(cx, &file, folder.as_deref(), name.as_deref())?;
            if !added {
                let shown = signedby
                    .and_then(Path::file_name)
                    .map_or_else(|| file.clone(), |name| file.with_file_name(name));
                return Err(Error::failed(format!(
                    "Error: Could not add key: {}",
                    shown.display()
                )));
            }
            return Ok(());
        }
        let words = ["apt-key".to_owned(), "add".into(), file.display().to_string()];
        let ran = cmd::plain(cx, words, options(&Dict::new()))?;
        if !ran.stdout.to_uppercase().starts_with("OK") {
            return Err(Error::failed(format!("Error: failed to add key from {url}")));
        }
    } else if let Some(text) = text_of(settings, "key_text") {
        let how = cmd::Options { stdin: Some(text.clone()), ..options(&Dict::new()) };
        let ran = cmd::plain(cx, ["apt-key", "add", "-"], how)?;
        if !ran.stdout.to_uppercase().starts_with("OK") {
            return Err(Error::failed(format!("Error: failed to add key:\n{text}")));
        }
    }
    Ok(())
}

/// A request to add or change a source, understood.
struct Change {
    line: String,
    wanted: Line,
    settings: Dict,
    aptkey: bool,
}

impl Change {
    fn new(cx: &Cx, repo: &str, settings: &Dict) -> Result<Self> {
        let settings = settings.shallow_copy();
        let aptkey = settings.get("aptkey").is_none_or(|flag| flag.truthy())
            && cx.host.which("apt-key").is_some();
        let mut line = repo.to_owned();
        if let Some(ppa) = repo.strip_prefix("ppa:") {
            if !is_ubuntu(cx) {
                return Err(Error::failed(format!(
                    "cannot parse \"ppa:\" style repo definitions: {repo}"
                )));
            }
            let (owner, name) = split_ppa(ppa)?;
            let dist = cx.grain_str("oscodename");
            settings.insert("dist", dist.as_str());
            settings.get_or_insert_with("file", || {
                format!("/etc/apt/sources.list.d/{owner}-{name}-{dist}.list").into()
            });
            if !settings.contains("keyid") {
                // differs: Salt asks Launchpad for the fingerprint.
                return Err(Error::failed(format!(
                    "`apt-add-repository` is needed to add {repo} (or give its `keyid`)"
                )));
            }
            settings.get_or_insert_with("keyserver", || "keyserver.ubuntu.com".into());
            line = line_of(cx, repo, &settings)?;
        }
        let wanted = Line::parse(&line, MAIN)?;
        if wanted.invalid {
            return Err(Error::invalid(format!(
                "Name {line} is not valid. This must be the complete repo entry as seen in the \
                 sources file"
            )));
        }
        Ok(Self { line, wanted, settings, aptkey })
    }

    fn signedby(&self) -> Option<PathBuf> {
        (!self.wanted.signedby.is_empty()).then(|| PathBuf::from(&self.wanted.signedby))
    }

    /// The entry to look for once the change is made: `dist` and `comps` may say otherwise than
    /// the line.
    // differs: Salt looks for the line as given, and does not find what it has just written.
    fn outcome(&self) -> Line {
        let mut line = self.wanted.clone();
        if let Some(dist) = text_of(&self.settings, "dist") {
            line.dist = dist;
        }
        if let Some(comps) = self.settings.get("comps").filter(Value::truthy) {
            line.comps = cmd::split_input(&comps);
        }
        line
    }

    /// The sources with this one among them.
    fn edited(&self, mut all: Vec<Source>) -> Result<Vec<Source>> {
        let Self { wanted, settings, aptkey, .. } = self;
        let comps_given =
            settings.get("comps").filter(Value::truthy).map(|comps| cmd::split_input(&comps));
        let mut full_comps = wanted.comps.clone();
        for comp in comps_given.iter().flatten() {
            if !full_comps.contains(comp) {
                full_comps.push(comp.clone());
            }
        }
        let comps = comps_given.unwrap_or_else(|| full_comps.clone());
        let architectures = match settings.get("architectures").filter(Value::truthy) {
            Some(given) => cmd::split_input(&given),
            None => wanted.architectures.clone(),
        };
        let disabled = match (settings.get("disabled"), settings.get("enabled")) {
            (Some(disabled), _) => Some(disabled.truthy()),
            (None, Some(enabled)) => Some(!enabled.truthy()),
            _ => None,
        };
        let trusted = settings.get("trusted").map(|flag| match &flag {
            Value::Str(text) => truth(text).unwrap_or(false),
            other => other.truthy(),
        });
        let dist = text_of(settings, "dist");
        let found = all.iter().position(|source| {
            let repo_fits = source.types().contains(&wanted.kind)
                && source.uris().iter().any(|uri| same_uri(uri, &wanted.uri))
                && (source.suites().contains(&wanted.dist)
                    || dist.as_ref().is_some_and(|dist| source.suites().contains(dist)));
            let given_fits = dist.as_ref().is_some_and(|dist| source.suites().contains(dist))
                && text_of(settings, "type").is_some_and(|kind| source.types().contains(&kind));
            !source.invalid()
                && (repo_fits || given_fits)
                && (source.comps().is_empty()
                    || full_comps.iter().any(|comp| source.comps().contains(comp))
                    || architectures != source.architectures())
        });
        let comments = settings.get("comments").map(|comments| {
            let texts = comments.items_of_sequence().unwrap_or_else(|| vec![comments.clone()]);
            texts.iter().map(Value::to_string).collect::<Vec<_>>().join(" ").trim().to_owned()
        });
        let file = text_of(settings, "file");
        let at = match found {
            Some(at) => at,
            None => {
                if !aptkey && wanted.signedby.is_empty() && trusted != Some(true) {
                    return Err(Error::invalid(
                        "missing 'signedby' or 'trusted' option when apt-key is missing",
                    ));
                }
                let file = file.clone().unwrap_or_else(|| MAIN.to_owned());
                all.push(if file.ends_with(".sources") {
                    let mut section = Section { file, ..Section::default() };
                    section.set("Types", wanted.kind.as_str());
                    section.set("URIs", wanted.uri.as_str());
                    section.set("Suites", wanted.dist.as_str());
                    section.set("Components", wanted.comps.join(" "));
                    if trusted == Some(true) || (trusted.is_none() && wanted.trusted == Some(true))
                    {
                        section.set("Trusted", "yes");
                    }
                    Source::Section(section)
                } else {
                    Source::Line(Line { file, ..wanted.clone() })
                });
                all.len() - 1
            }
        };
        let Some(source) = all.get_mut(at) else { return Ok(all) };
        match source {
            Source::Line(line) => {
                line.text.clone_from(&wanted.text);
                line.others_from(wanted);
                line.comps = comps;
                line.signedby.clone_from(&wanted.signedby);
                line.uri.clone_from(&wanted.uri);
                if !architectures.is_empty() || !line.architectures.is_empty() {
                    line.architectures = architectures;
                }
                if let Some(disabled) = disabled {
                    line.disabled = disabled;
                }
                line.trusted = trusted.or(wanted.trusted).or(line.trusted);
                if let Some(dist) = dist {
                    line.dist = dist;
                }
                // An entry in another file stays there: a `.list` line must not get among the
                // sections of a `.sources` file.
                if let Some(file) = file.filter(|file| !file.ends_with(".sources")) {
                    line.file = file;
                }
                if let Some(comments) = comments {
                    line.comment = comments;
                }
                line.text = line.written();
            }
            Source::Section(section) => {
                section.set("Components", comps.join(" "));
                // The address as it is asked for now: with or without the slash at its end.
                let uris = section.words("URIs").into_iter();
                let uris = uris.map(|uri| match same_uri(&uri, &wanted.uri) {
                    true => wanted.uri.clone(),
                    false => uri,
                });
                let uris = uris.collect::<Vec<_>>().join(" ");
                section.set("URIs", uris);
                if !wanted.signedby.is_empty() {
                    section.set("Signed-By", wanted.signedby.as_str());
                }
                if !architectures.is_empty() || section.get("Architectures").is_some() {
                    section.set("Architectures", architectures.join(" "));
                }
                match disabled {
                    Some(true) => section.set("Enabled", "no"),
                    Some(false) => section.unset("Enabled"),
                    None => {}
                }
                if let Some(trusted) = trusted {
                    section.set("Trusted", if trusted { "yes" } else { "no" });
                }
                if let Some(dist) = dist {
                    section.set("Suites", dist);
                }
                for (name, field) in [("suites", "Suites"), ("types", "Types"), ("uris", "URIs")] {
                    if let Some(given) = settings.get(name).filter(Value::truthy) {
                        section.set(field, cmd::split_input(&given).join(" "));
                    }
                }
                if let Some(comments) = comments {
                    let mark = |line: &str| {
                        if line.starts_with('#') { line.to_owned() } else { format!("#{line}") }
                    };
                    section.header = comments.lines().map(mark).collect();
                }
                // differs: Salt writes the section into a `.list` file, where apt cannot read it.
                if let Some(file) = file.filter(|file| file.ends_with(".sources")) {
                    section.file = file;
                }
            }
        }
        Ok(all)
    }
}

/// Adds a source, or changes the one there is.
pub(super) fn modify(cx: &Cx, repo: &str, settings: &Dict) -> Result<Dict> {
    let refresh = settings
        .get("refresh_db")
        .or_else(|| settings.get("refresh"))
        .is_none_or(|refresh| refresh.truthy());
    if let Some(ppa) = repo.strip_prefix("ppa:")
        && is_ubuntu(cx)
        && cx.host.which("apt-add-repository").is_some()
        && !settings.contains("ppa_auth")
    {
        return add_ppa(cx, repo, ppa, refresh);
    }
    let change = Change::new(cx, repo, settings)?;
    bring_key(cx, &change.settings, change.signedby().as_deref(), change.aptkey)?;
    sources::save(cx, &change.edited(sources::load(cx)?)?)?;
    if refresh {
        super::Apt.refresh_db(cx, &Dict::new())?;
    }
    let found = found(&sources::load(cx)?, &change.outcome())?;
    Ok(entries! { change.line.as_str() => found })
}

/// What [`get`] will answer once [`modify`] has been called with these settings.
pub(super) fn after(cx: &Cx, repo: &str, settings: &Dict) -> Result<Dict> {
    let change = Change::new(cx, repo, settings)?;
    found(&change.edited(sources::load(cx)?)?, &change.outcome())
}

/// Tells whether two descriptions mean the same entry: neither its file nor the order of the
/// options in its line matters.
pub(super) fn same(one: &Dict, other: &Dict) -> bool {
    let line = |dict: &Dict| {
        let text = dict.get("line").unwrap_or_default().to_str();
        let mut line = Line::parse(&text, MAIN).unwrap_or_default();
        line.text.clear();
        line.others.sort();
        line
    };
    let differs = |(key, value): (halite_value::Key, Value)| {
        !matches!(key.to_str().as_str(), "file" | "line") && other.get(&key) != Some(value)
    };
    !one.into_iter().any(differs) && line(one) == line(other)
}

/// What there is of a source, looked for as [`after`] does.
pub(super) fn before(cx: &Cx, repo: &str, settings: &Dict) -> Result<Dict> {
    let line = line_of(cx, repo, settings)?;
    let wanted = Line::parse(&line, MAIN)?;
    let sources = sources::load(cx)?;
    let seen = found(&sources, &wanted)?;
    if !seen.is_empty() {
        return Ok(seen);
    }
    let change = Change { line, wanted, settings: settings.shallow_copy(), aptkey: true };
    found(&sources, &change.outcome())
}

fn add_ppa(cx: &Cx, repo: &str, ppa: &str, refresh: bool) -> Result<Dict> {
    let found = get(cx, repo, &Dict::new())?;
    if !found.is_empty() {
        return Ok(entries! { repo => found });
    }
    let words = ["apt-add-repository", "-y", repo];
    let ran = call(cx, words, options(&Dict::new()))?;
    if !ran.ok() {
        return Err(Error::failed(format!(
            "Unable to add PPA '{ppa}'. '{}' exited with status {}: '{}'",
            Value::list(words).repr(),
            ran.retcode.unwrap_or_default(),
            ran.stderr
        )));
    }
    if refresh {
        super::Apt.refresh_db(cx, &Dict::new())?;
    }
    Ok(entries! { repo => ran.to_value() })
}
