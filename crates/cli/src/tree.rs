//! `halite doctor TREE`: which functions a state tree uses, and where each comes from.
//!
//! Files are read as text, not rendered: what a template would choose at run time is not known here,
//! so everything that stands in a file counts. A name is native, the user's own Python (from the
//! tree's `_modules`, `_states` …), served by an installed `salt` package, or missing.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use halite_bridge::{Bridge, KINDS, Listing, Nobody, Session, Settings};
use halite_minion::registry;
use halite_value::{Dict, Value, entries, suggest};

/// Files larger than this are data.
const MOST_BYTES: u64 = 1 << 20;

/// Where a function comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Native,
    User,
    Package,
    Missing(Option<String>),
}

/// A use: `states` or `modules`, the name, and where it stands first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// What was found out.
pub(crate) struct Report {
    pub(crate) files: usize,
    pub(crate) uses: Vec<(Use, Origin, usize, String)>,
    /// Users' modules that do not load.
    pub(crate) broken: Vec<(String, String)>,
    /// Why Python could not be asked.
    pub(crate) problem: Option<String>,
}

/// Looks at a tree; `opts` say which interpreter to ask.
pub(crate) fn look(tree: &Path, opts: &Dict) -> Report {
    let mut found: BTreeMap<Use, (usize, String)> = BTreeMap::new();
    let mut folders: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let mut files = 0;
    for path in walk(tree) {
        let rel = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
        let own = KINDS.into_iter().find(|kind| {
            path.parent()
                .and_then(Path::file_name)
                .is_some_and(|name| name.to_string_lossy().strip_prefix('_') == Some(*kind))
        });
        if let Some(kind) = own {
            let folder = path.parent().unwrap_or(tree).to_string_lossy().into_owned();
            folders.entry(kind).or_default().insert(folder);
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        files += 1;
        for (line, mut used) in uses(&text, Language::of(&rel, &text)) {
            // `__salt__` of a runner holds runners.
            if own == Some("runners") {
                used.kind = "runners";
            }
            let entry = found.entry(used).or_insert_with(|| (0, format!("{rel}:{line}")));
            entry.0 += 1;
        }
    }
    judge(files, found, &folders, opts)
}

fn judge(
    files: usize,
    found: BTreeMap<Use, (usize, String)>,
    folders: &BTreeMap<&'static str, BTreeSet<String>>,
    opts: &Dict,
) -> Report {
    let mut settings = Settings::from_opts(opts);
    for (kind, list) in &mut settings.folders {
        *list = folders.get(kind).map(|own| own.iter().cloned().collect()).unwrap_or_default();
    }
    let native = entries! {
        "modules" => Value::list(registry::function_names()),
        "states" => Value::list(registry::state_names()),
    };
    let bridge = Bridge::new(settings, native);
    let grains =
        opts.get("grains").and_then(|grains| grains.as_dict().cloned()).unwrap_or_default();
    let empty = Dict::new();
    let session = Session {
        opts,
        grains: &grains,
        pillar: &empty,
        low: &empty,
        jid: "",
        saltenv: "base",
        extra: Dict::new(),
        callbacks: &Nobody,
        limit: None,
    };
    let mut report = Report { files, uses: Vec::new(), broken: Vec::new(), problem: None };
    let mut listings: BTreeMap<&'static str, Listing> = BTreeMap::new();
    for kind in ["modules", "states", "runners"] {
        match bridge.listing(&session, kind) {
            Ok(listing) => {
                let missing = listing.missing.iter();
                report
                    .broken
                    .extend(missing.map(|(name, why)| (format!("_{kind}/{name}"), why.clone())));
                listings.insert(kind, (*listing).clone());
            }
            Err(error) => report.problem = Some(error.to_string()),
        }
    }
    report.broken.sort();
    for (used, (times, place)) in found {
        let origin = origin(&used, listings.get(used.kind), &bridge, &session);
        report.uses.push((used, origin, times, place));
    }
    report
}

fn origin(used: &Use, users: Option<&Listing>, bridge: &Bridge, session: &Session<'_>) -> Origin {
    let module = used.name.split('.').next().unwrap_or_default();
    let is_native = match used.kind {
        "states" => registry::state(&used.name).is_some(),
        "runners" => halite_runners::runner(&used.name).is_some(),
        _ => registry::function(&used.name).is_some(),
    };
    match users {
        Some(users) if users.has(&used.name) => return Origin::User,
        Some(users) if users.modules.contains(module) => return Origin::Missing(None),
        _ if is_native => return Origin::Native,
        _ => {}
    }
    if bridge.package_has(session, used.kind, &used.name) {
        return Origin::Package;
    }
    let names = match used.kind {
        "states" => registry::state_names(),
        _ => registry::function_names(),
    };
    let near = suggest::nearest(&used.name, names.iter().map(String::as_str));
    Origin::Missing(near.map(str::to_owned))
}

/// Words a report.
pub(crate) fn described(report: &Report, as_json: bool, quiet: bool) -> String {
    let mut text = String::new();
    if as_json {
        for (used, origin, times, place) in &report.uses {
            let (origin, near) = match origin {
                Origin::Native => ("native", None),
                Origin::User => ("user", None),
                Origin::Package => ("package", None),
                Origin::Missing(near) => ("missing", near.clone()),
            };
            let line = halite_value::dict! {
                "kind" => used.kind, "name" => used.name.as_str(), "from" => origin,
                "uses" => *times, "first" => place.as_str(), "suggestion" => near,
            };
            text += &format!("{}\n", halite_value::json::to_string(&line).unwrap_or_default());
        }
        return text;
    }
    let row = |used: &Use, times: usize, place: &str| {
        let what = match used.kind {
            "states" => "state",
            "runners" => "runner",
            _ => "function",
        };
        format!("  {:<36} {what:<9} {times:>5}  {place}", used.name)
    };
    let titles = [
        ("native", Origin::Native),
        ("your own Python", Origin::User),
        ("via an installed salt package", Origin::Package),
    ];
    for (title, wanted) in titles {
        let list: Vec<_> = report.uses.iter().filter(|(_, origin, ..)| *origin == wanted).collect();
        text += &format!("{title}: {}\n", list.len());
        for (used, _, times, place) in list.into_iter().filter(|_| !quiet) {
            text += &format!("{}\n", row(used, *times, place));
        }
    }
    let missing = |origin: &Origin| matches!(origin, Origin::Missing(_));
    let missing: Vec<_> = report.uses.iter().filter(|(_, origin, ..)| missing(origin)).collect();
    text += &format!("missing: {}\n", missing.len());
    for (used, origin, times, place) in missing {
        let near = match origin {
            Origin::Missing(Some(near)) => format!("  did you mean `{near}`?"),
            _ => String::new(),
        };
        text += &format!("{}{near}\n", row(used, *times, place));
    }
    for (module, why) in &report.broken {
        text += &format!("does not load: {module}: {why}\n");
    }
    if let Some(problem) = &report.problem {
        text += &format!("Python was not asked: {problem}\n");
    }
    text + &format!("{} files\n", report.files)
}

/// Returns all plain files below a folder, sorted; hidden ones and links to folders are left out.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with('.') || name == "__pycache__" {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.metadata().is_ok_and(|meta| meta.len() < MOST_BYTES) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

/// Tells whether a text is `module.function`.
fn is_name(text: &str) -> bool {
    let word = |word: &str| {
        word.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.split_once('.').is_some_and(|(module, function)| word(module) && word(function))
}

/// How a file says what it uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    /// States, and `salt` in Jinja.
    Sls,
    /// Jinja alone.
    Template,
    /// `__salt__`; `salt` is the package.
    Python,
}

impl Language {
    fn of(file: &str, text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        if file.ends_with(".py") || first.trim_end() == "#!py" {
            Self::Python
        } else if file.ends_with(".sls") {
            Self::Sls
        } else {
            Self::Template
        }
    }
}

/// Returns the functions a text uses, with their lines.
fn uses(text: &str, language: Language) -> Vec<(usize, Use)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') && at > 0 {
            continue;
        }
        for name in functions(line, language) {
            found.push((at + 1, Use { kind: "modules", name }));
        }
        if language == Language::Sls
            && let Some(name) = state(line, lines.get(at + 1).copied().unwrap_or_default())
        {
            found.push((at + 1, Use { kind: "states", name }));
        }
    }
    found
}

/// `salt['a.b']`, `salt["a.b"]`, `salt.a.b(`, `__salt__['a.b']`.
fn functions(line: &str, language: Language) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("salt") {
        let rest = &line[at + 4..];
        let rest = rest.strip_prefix("__").unwrap_or(rest);
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || c == '/') {
            continue;
        }
        if language == Language::Python && !line[..at].ends_with("__") {
            continue;
        }
        let quoted = ["['", "[\""].iter().find_map(|open| rest.strip_prefix(open));
        if let Some(rest) = quoted {
            let end = rest.find(['\'', '"']).unwrap_or(0);
            if is_name(&rest[..end]) {
                found.push(rest[..end].to_owned());
            }
        } else if let Some(rest) = rest.strip_prefix('.')
            && let Some((name, _)) = rest.split_once('(')
            && is_name(name)
        {
            found.push(name.to_owned());
        }
    }
    found
}

/// `  file.managed:` before its arguments, or `  - file.managed`.
fn state(line: &str, next: &str) -> Option<String> {
    let trimmed = line.trim();
    if !line.starts_with([' ', '\t']) {
        return None;
    }
    if let Some(name) = trimmed.strip_suffix(':') {
        let next = next.trim_start();
        let has_arguments = next.starts_with("- ") || next.starts_with("{%");
        return (has_arguments && is_name(name)).then(|| name.to_owned());
    }
    let name = trimmed.strip_suffix(": []").or_else(|| trimmed.strip_prefix("- "));
    let name = name.unwrap_or(trimmed);
    // A name alone on its line may be anything (`- example.org`): only what is a state counts.
    (is_name(name) && registry::state(name).is_some() || trimmed.ends_with(": []") && is_name(name))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        uses(text, Language::of("a.sls", text))
            .into_iter()
            .map(|(line, used)| format!("{line} {} {}", used.kind, used.name))
            .collect()
    }

    #[test]
    fn uses_are_found_in_text() {
        let text = "#!jinja|yaml\n{% set x = salt['cmd.run']('x') %}{{ salt.grains.get('a') }}\n\
                    # salt['not.this']\na:\n  file.managed:\n    - name: /x\n  - example.org\n\
                    b:\n  own.state: []\nc:\n  test.nop\nd.conf:\n  e.f: 1\n";
        assert_eq!(
            names(text),
            [
                "2 modules cmd.run",
                "2 modules grains.get",
                "5 states file.managed",
                "9 states own.state",
                "11 states test.nop"
            ]
        );
        assert_eq!(names("x = __salt__[\"a.b\"](1)"), ["1 modules a.b"]);
        let python = "#!py\nraise salt.exceptions.Bad(__salt__.a.b(1))";
        assert_eq!(names(python), ["2 modules a.b"]);
        assert_eq!(names("source: salt://a.b(c)"), [""; 0]);
    }

    #[test]
    fn a_tree_is_judged() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("_modules/own.py", "def here():\n    pass\n");
        write(
            "a.sls",
            "{{ salt['own.here']() }}{{ salt['own.gone']() }}{{ salt['test.png']() }}\na:\n  test.nop: []\n",
        );
        let own = entries! { "python_packages" => false };
        let report = look(folder.path(), &entries! { "halite" => own });
        let found: Vec<String> = report
            .uses
            .iter()
            .map(|(used, origin, _, place)| format!("{} {origin:?} {place}", used.name))
            .collect();
        assert_eq!(
            found,
            [
                "own.gone Missing(None) a.sls:1",
                "own.here User a.sls:1",
                "test.png Missing(Some(\"test.ping\")) a.sls:1",
                "test.nop Native a.sls:3",
            ]
        );
    }
}
