//! `file.recurse`: a folder of the file server, with everything in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use halite_modules::{
    cp::{is_included, patterns},
    file::{
        content::names_of,
        managed::{Request, View},
        paths::{expand_user, joined, normalized, parent, relative},
        perms::{Mode, Owner, Wanted},
        source::parse_salt,
        tree::make_folders,
    },
};
use halite_spec::{Applied, Args, Cx, Error, FromArg, Plan, Result, State, keywords};
use halite_value::{Dict, Value, entries};

use super::{clean, directory::Plain, linked::Link, must_be_absolute, texts, unknown_owners};

/// Bring a folder of the file server to this machine, with everything in it.
#[derive(Args)]
#[arg(open)]
pub struct Recurse {
    /// The folder on this machine.
    name: String,
    /// The folder on the server; of a list, the first that exists.
    source: Value,
    /// Keep the files in the cache.
    #[expect(dead_code, reason = "the cache is the file client's")]
    #[default(true)]
    keep_source: bool,
    /// Remove what the server does not have.
    #[default(false)]
    clean: bool,
    /// The states whose files `clean` spares.
    require: Option<Value>,
    /// The user that owns everything.
    #[arg(alias = "owner")]
    user: Option<Owner>,
    /// The group that owns everything.
    group: Option<Owner>,
    /// The mode of folders.
    dir_mode: Option<Mode>,
    /// The mode of files; `keep` takes the server's.
    file_mode: Option<Mode>,
    /// The mode of folders made for links.
    sym_mode: Option<Mode>,
    /// The template engine for every file.
    template: Option<String>,
    /// Names for the templates.
    context: Option<Value>,
    /// Replace files that are there.
    #[default(true)]
    replace: bool,
    /// Names for the templates where `context` has none.
    defaults: Option<Value>,
    /// Make empty folders too.
    #[default(false)]
    include_empty: bool,
    /// `minion` keeps a copy of each file replaced.
    #[default(String::new())]
    backup: String,
    /// Only paths that match; regular expressions after `E@`.
    include_pat: Option<Value>,
    /// Not paths that match.
    exclude_pat: Option<Value>,
    /// How many folders deep.
    maxdepth: Option<u64>,
    /// Make links where the server has links.
    #[default(false)]
    keep_symlinks: bool,
    /// Replace what stands where a link shall be.
    #[default(false)]
    force_symlinks: bool,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_owner: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_perms: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    win_deny_perms: Option<Value>,
    /// For Windows.
    #[expect(dead_code, reason = "for Windows")]
    #[default(true)]
    win_inheritance: bool,
    /// Take all sources, not only the first.
    #[default(false)]
    merge: bool,
    /// Show the difference of each file.
    #[default(true)]
    #[arg(by_name)]
    show_changes: bool,
    /// Not an argument of this state; an error says so.
    #[arg(by_name)]
    mode: Option<Value>,
}

/// What to take from the server.
#[derive(Clone, Debug, Default)]
struct Choice {
    keep_symlinks: bool,
    include: Vec<String>,
    exclude: Vec<String>,
    max_depth: Option<usize>,
    include_empty: bool,
    merge: bool,
}

/// What the folder will hold: path → source, folders, link → target.
#[derive(Clone, Debug, Default)]
struct Tree {
    files: BTreeMap<String, String>,
    dirs: BTreeSet<String>,
    links: BTreeMap<String, String>,
    /// Everything that `clean` spares.
    keep: BTreeSet<String>,
    /// All folders above files.
    all_dirs: BTreeSet<String>,
}

impl Tree {
    fn is_taken(&self, path: &str) -> bool {
        if self.all_dirs.contains(path) {
            return true;
        }
        let mut at = path;
        loop {
            if self.files.contains_key(at) || self.links.contains_key(at) {
                return true;
            }
            let above = parent(at);
            if above == at || above.is_empty() {
                return false;
            }
            at = above;
        }
    }
}

/// The sources that exist.
fn available(cx: &Cx, source: &Value) -> Result<Vec<String>> {
    let saltenv = cx.saltenv();
    let sources: Vec<String> =
        texts(source).into_iter().map(|text| text.trim_end_matches('/').to_owned()).collect();
    if let Some(bad) = sources.iter().find(|source| !source.starts_with("salt://")) {
        return Err(Error::failed(format!("Invalid source '{bad}' (must be a salt:// URI)")));
    }
    let mut found = Vec::new();
    for source in sources {
        let (path, env) = parse_salt(&source);
        let env = env.as_deref().unwrap_or(&saltenv);
        let dirs = cx.files.list_dirs(env, parent(&path))?;
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let served = dirs.contains(&path)
            || dirs.iter().any(|dir| dir.starts_with(&format!("{path}/")))
            // A file is no tree, nor are others whose names begin as its own.
            || cx.files.list(env, &path)?.iter().any(|file| file.starts_with(&below));
        if served {
            found.push(source);
        }
    }
    if found.is_empty() {
        return Err(Error::failed("none of the specified sources were found"));
    }
    Ok(found)
}

impl Choice {
    /// The path below the source, if it is taken.
    fn accepted(&self, path: &str, root: &str) -> Result<Option<String>> {
        let below = relative(path, root);
        let leaves = format!("/{below}/").contains("/../");
        let deep = below.trim_matches('/').matches('/').count();
        if path.trim().is_empty() || leaves || self.max_depth.is_some_and(|most| deep > most) {
            return Ok(None);
        }
        Ok(is_included(&below, &self.include, &self.exclude)?.then_some(below))
    }

    fn tree(&self, cx: &Cx, name: &str, sources: &[String]) -> Result<Tree> {
        let mut tree = Tree::default();
        let count = if self.merge { sources.len() } else { 1 };
        for source in sources.iter().take(count) {
            self.add(cx, name, source, &mut tree)?;
        }
        Ok(tree)
    }

    fn add(&self, cx: &Cx, name: &str, source: &str, tree: &mut Tree) -> Result<()> {
        let (root, env) = parse_salt(source);
        let saltenv = env.unwrap_or_else(|| cx.saltenv());
        let full = |below: &str| joined(name, &normalized(below));
        let mut files = cx.files.list(&saltenv, &root)?;
        let dirs = cx.files.list_dirs(&saltenv, &root)?;
        let mut ignored = BTreeSet::new();
        if self.keep_symlinks {
            for (link, target) in cx.files.list_links(&saltenv, &root)? {
                let before = files.len();
                let inside = format!("{link}/");
                let own = files.contains(&link);
                files.retain(|file| *file != link && !file.starts_with(&inside));
                let was_dir = before - files.len() > usize::from(own);
                let Some(below) = self.accepted(&link, &root)? else { continue };
                let dest = full(&below);
                if tree.is_taken(&dest) {
                    continue;
                }
                let points_to = normalized(&joined(parent(&dest), &target));
                if was_dir && tree.files.contains_key(&points_to) {
                    ignored.insert(dest);
                    continue;
                }
                if !was_dir && tree.dirs.contains(&points_to) {
                    continue;
                }
                tree.keep.insert(dest.clone());
                tree.links.insert(dest, target);
            }
        }
        for file in files {
            let Some(below) = self.accepted(&file, &root)? else { continue };
            let dest = full(&below);
            if tree.is_taken(&dest) {
                continue;
            }
            tree.keep.insert(dest.clone());
            tree.dirs.insert(parent(&dest).to_owned());
            let mut above = parent(&dest);
            while tree.all_dirs.insert(above.to_owned()) {
                let next = parent(above);
                if next == above || next.is_empty() {
                    break;
                }
                above = next;
            }
            tree.files.insert(dest, format!("salt://{file}?saltenv={saltenv}"));
        }
        if self.include_empty {
            for dir in &dirs {
                let Some(below) = self.accepted(dir, &root)? else { continue };
                let dest = full(&below).trim_end_matches("/.").to_owned();
                if ignored.contains(&dest) || tree.is_taken(&dest) {
                    continue;
                }
                tree.dirs.insert(dest.clone());
                tree.all_dirs.insert(dest.clone());
                tree.keep.insert(dest);
            }
        } else if self.keep_symlinks {
            // Links to folders that are left out because they are empty go too.
            loop {
                let gone: Vec<String> = tree
                    .links
                    .iter()
                    .filter(|(_, target)| {
                        let target = target.as_str();
                        let served = normalized(&joined(&root, target));
                        let here = normalized(&full(target));
                        dirs.contains(&served)
                            && !tree.files.contains_key(&here)
                            && !tree.all_dirs.contains(&here)
                            && !tree.links.contains_key(&here)
                    })
                    .map(|(link, _)| link.clone())
                    .collect();
                if gone.is_empty() {
                    break;
                }
                for link in gone {
                    tree.links.remove(&link);
                }
            }
        }
        Ok(())
    }
}

/// Returns what another `file.recurse` manages, for `clean`.
pub(super) fn managed_paths(cx: &Cx, low: &Dict) -> Result<Vec<String>> {
    let flag = |key: &str| low.get(key).is_some_and(|value| value.truthy());
    let depth = low.get("maxdepth").and_then(|value| u64::from_arg(value).ok());
    let choice = Choice {
        keep_symlinks: flag("keep_symlinks"),
        include: patterns(low.get("include_pat").as_ref()),
        exclude: patterns(low.get("exclude_pat").as_ref()),
        max_depth: depth.and_then(|depth| usize::try_from(depth).ok()),
        include_empty: flag("include_empty"),
        merge: flag("merge"),
    };
    let name = low.get("name").unwrap_or_default().to_str();
    let sources = available(cx, &low.get("source").unwrap_or_default())?;
    Ok(choice.tree(cx, &name, &sources)?.keep.into_iter().collect())
}

/// One thing to do, in order.
enum Step {
    /// Something of another kind stands there.
    Clear(String, &'static str),
    /// It cannot be done; this is why.
    Fail(String, String),
    Dir(String),
    /// A file, its source, and what was found. The request is made again: it says the same of all.
    File(String, String, Box<View>),
    Link(Link),
}

/// What is to be done.
pub struct Work {
    name: String,
    is_new: bool,
    steps: Vec<Step>,
    remove: Vec<String>,
    plan: Plan,
}

impl Recurse {
    fn choice(&self) -> Choice {
        Choice {
            keep_symlinks: self.keep_symlinks,
            include: patterns(self.include_pat.as_ref()),
            exclude: patterns(self.exclude_pat.as_ref()),
            max_depth: self.maxdepth.and_then(|depth| usize::try_from(depth).ok()),
            include_empty: self.include_empty,
            merge: self.merge,
        }
    }

    fn plain(&self) -> Plain {
        Plain { user: self.user.clone(), group: self.group.clone(), mode: self.dir_mode.clone() }
    }

    fn request(&self, cx: &Cx, path: &str, source: &str) -> Result<Request> {
        let mut request = Request::new(path, &cx.saltenv());
        let keep = self.file_mode.as_ref().is_some_and(Mode::is_keep);
        let origin = &mut request.origin;
        origin.source = Some(source.to_owned());
        origin.template = self.template.clone().filter(|engine| !engine.is_empty());
        origin.context = names_of(self.context.as_ref(), "Context")?;
        origin.defaults = names_of(self.defaults.as_ref(), "Defaults")?;
        origin.names = keywords::strays(&cx.low, Self::PARAMS);
        origin.names.update(&entries! {
            "user" => self.user.as_ref().map(Value::from),
            "group" => self.group.as_ref().map(Value::from),
            "mode" => self.file_mode.as_ref().map(|mode| Value::str(mode.as_str())),
            "attrs" => Value::Null,
        });
        let mode = self.file_mode.clone().filter(|mode| !mode.is_keep());
        request.wanted = Wanted::new(self.user.clone(), self.group.clone(), mode);
        request.keep_mode = keep;
        request.backup.clone_from(&self.backup);
        request.makedirs = true;
        request.show_changes = self.show_changes;
        if !self.replace && cx.host.exists(Path::new(path))? {
            request.origin.source = None;
            request.keep_mode = false;
        }
        Ok(request)
    }

    fn link(&self, cx: &Cx, name: &str, target: &str) -> Result<Link> {
        let (user, group) = super::default_owner(cx, self.user.as_ref(), self.group.as_ref())?;
        Ok(Link {
            name: name.to_owned(),
            target: target.to_owned(),
            force: self.force_symlinks,
            backupname: None,
            makedirs: true,
            user,
            group,
            mode: self.sym_mode.clone(),
            atomic: false,
            stay_on_device: false,
            follow: true,
        })
    }
}

/// The answers of all parts, put together as Salt does.
#[derive(Default)]
struct Sum {
    changes: Dict,
    comment: String,
    failed: bool,
    pending: bool,
}

impl Sum {
    /// Adds what is to be said of a path.
    fn say(&mut self, path: &str, text: &str) {
        let gap = if self.comment.is_empty() { "" } else { "\n\n" };
        let _ = write!(self.comment, "{gap}#### {path} ####\n{text}");
    }

    fn text(mut self) -> String {
        self.comment.truncate(self.comment.trim_end().len());
        self.comment
    }
}

impl State for Recurse {
    type Seen = Work;

    fn refusal(&self, cx: &Cx) -> Result<Option<String>> {
        Ok(unknown_owners(cx, self.user.as_ref(), self.group.as_ref())
            .filter(|_| self.mode.is_none()))
    }

    fn observe(&self, cx: &Cx) -> Result<Work> {
        if self.mode.is_some() {
            return Err(Error::failed(
                "'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.",
            ));
        }
        let name = expand_user(cx, &self.name);
        must_be_absolute(&name)?;
        let name = if name == "/" { name } else { name.trim_end_matches('/').to_owned() };
        let sources = available(cx, &self.source)
            .map_err(|error| Error::failed(format!("Recurse failed: {error}")))?;
        let at = Path::new(&name);
        let is_new = !cx.host.is_dir(at)?;
        if is_new && cx.host.exists(at)? {
            return Err(Error::failed(format!("The path {name} exists and is not a directory")));
        }
        let tree = self.choice().tree(cx, &name, &sources)?;
        let mut sum = Sum::default();
        let mut steps = Vec::new();
        // differs: with `include_empty` a test of genuine Salt names the folder itself a second time, as
        // `name/.`.
        for dir in &tree.dirs {
            self.look_dir(cx, dir, &mut sum, &mut steps)?;
        }
        for (path, source) in tree.files {
            self.look_file(cx, path, source, &mut sum, &mut steps)?;
        }
        for link in ordered(&tree.links) {
            let link = self.link(cx, link, &tree.links[link])?;
            let plan = link.look(cx)?;
            if plan.is_empty() {
                continue;
            }
            sum.pending = true;
            sum.failed |= plan.test_result == Some(false);
            sum.say(&link.name, &plan.pending);
            if !plan.changes.is_empty() {
                sum.changes.insert(link.name.as_str(), &plan.changes);
            }
            steps.push(Step::Link(link));
        }
        let mut remove = Vec::new();
        if self.clean && !is_new {
            let require = self.require.clone().unwrap_or_default();
            let keep = clean::required(cx, &name, &require)?;
            let keep = tree.keep.iter().cloned().chain(keep);
            remove = clean::unkept(cx, &name, keep, &patterns(self.exclude_pat.as_ref()))?;
            if !remove.is_empty() {
                sum.pending = true;
                sum.say("removed", &remove.join("\n"));
            }
        }
        let mut plan = Plan::changes(sum.changes.clone());
        plan.unknown = sum.pending;
        plan.test_result = if sum.failed { Some(false) } else { None };
        plan.pending = sum.text();
        if plan.is_empty() {
            plan.pending = format!("The directory {name} is in the correct state");
        }
        Ok(Work { name, is_new, steps, remove, plan })
    }

    fn plan(&self, work: &Work) -> Result<Plan> {
        Ok(work.plan.clone())
    }

    fn apply(&self, cx: &Cx, work: Work) -> Result<Applied> {
        let Work { name, is_new, steps, remove, plan } = work;
        // What a test would say is not needed any more, and may be long.
        drop(plan);
        if is_new {
            let owner = (self.user.as_ref(), self.group.as_ref());
            make_folders(cx, &name, owner, self.dir_mode.as_ref())?;
        }
        let mut sum = Sum::default();
        for step in steps {
            self.perform(cx, step, &mut sum)?;
        }
        if !remove.is_empty() {
            clean::remove(cx, &remove)?;
            sum.changes.insert("removed", clean::tops(&remove));
        }
        let (changes, failed) = (sum.changes.clone(), sum.failed);
        let mut comment = sum.text();
        if comment.is_empty() {
            comment = if changes.is_empty() && !failed {
                format!("The directory {name} is in the correct state")
            } else {
                format!("Recursively updated {name}")
            };
        }
        Ok(Applied {
            changes: Some(changes),
            comment: Some(comment),
            result: Some(!failed),
            extra: Dict::new(),
        })
    }
}

impl Recurse {
    fn look_dir(&self, cx: &Cx, dir: &str, sum: &mut Sum, steps: &mut Vec<Step>) -> Result<()> {
        let at = Path::new(dir);
        if self.clean && cx.host.exists(at)? && !cx.host.is_dir(at)? {
            sum.pending = true;
            sum.say(dir, &format!("Replacing {dir} with a directory"));
            steps.push(Step::Clear(dir.to_owned(), "Replaced file with a directory"));
            steps.push(Step::Dir(dir.to_owned()));
            return Ok(());
        }
        let changes = self.plain().look(cx, dir)?;
        if changes.is_empty() {
            return Ok(());
        }
        let mut comment = "The following files will be changed:\n".to_owned();
        for (path, differing) in &changes {
            for (key, value) in differing.as_dict().into_iter().flatten() {
                comment.push_str(&format!("{path}: {key} - {value}\n"));
            }
        }
        sum.pending = true;
        sum.say(dir, &comment);
        sum.changes.insert(dir, changes);
        steps.push(Step::Dir(dir.to_owned()));
        Ok(())
    }

    fn look_file(
        &self,
        cx: &Cx,
        path: String,
        source: String,
        sum: &mut Sum,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let request = self.request(cx, &path, &source)?;
        let at = Path::new(&path);
        if cx.host.is_dir(at)? {
            if self.clean && self.replace {
                sum.pending = true;
                let text = format!("Replacing directory {path} with a file");
                sum.say(&path, &text);
                steps.push(Step::Clear(path.clone(), "Replaced directory with a new file"));
                let view = request.look_at_nothing(cx)?;
                steps.push(Step::File(path, source, Box::new(view)));
                return Ok(());
            }
            sum.failed = true;
            sum.pending = true;
            let text = format!("Specified target {path} is a directory");
            sum.say(&path, &text);
            steps.push(Step::Fail(path, text));
            return Ok(());
        }
        let view = match request.look(cx) {
            Ok(view) => view,
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                sum.failed = true;
                sum.pending = true;
                let text = format!("Unable to manage file: {error}");
                sum.say(&path, &error.to_string());
                steps.push(Step::Fail(path, text));
                return Ok(());
            }
        };
        let changes = view.expected(&request);
        if changes.is_empty() {
            return Ok(());
        }
        sum.pending = true;
        let text = format!(
            "The file {path} is set to be changed\nNote: No changes made, actual changes may\n\
             be different due to other states."
        );
        sum.say(&path, &text);
        sum.changes.insert(path.as_str(), changes);
        steps.push(Step::File(path, source, Box::new(view)));
        Ok(())
    }

    fn perform(&self, cx: &Cx, step: Step, sum: &mut Sum) -> Result<()> {
        match step {
            Step::Fail(path, why) => {
                sum.failed = true;
                sum.say(&path, &why);
            }
            Step::Clear(path, what) => {
                cx.host.remove_all(Path::new(&path))?;
                sum.changes.insert(path, entries! { "diff" => what });
            }
            Step::Dir(path) => {
                let plain = self.plain();
                let changes = plain.look(cx, &path)?;
                if changes.is_empty() {
                    return Ok(());
                }
                let problems = plain.make(cx, &path, &changes)?;
                sum.changes.insert(path.as_str(), changes);
                if !problems.is_empty() {
                    sum.failed = true;
                    sum.say(&path, &problems.join("; "));
                }
            }
            Step::File(path, source, view) => {
                let request = self.request(cx, &path, &source)?;
                let done = request.perform(cx, *view)?;
                if !done.changes.is_empty() {
                    sum.changes.insert(path.as_str(), done.changes);
                }
                if !done.result {
                    sum.failed = true;
                    sum.say(&path, &done.comment);
                }
            }
            Step::Link(link) => {
                let applied = match link.make(cx) {
                    Ok(applied) => applied,
                    Err(Error::Cancelled) => return Err(Error::Cancelled),
                    Err(error) => Applied::failed(Dict::new(), error.to_string()),
                };
                let changes = applied.changes.unwrap_or_default();
                if !changes.is_empty() {
                    sum.changes.insert(link.name.as_str(), changes);
                }
                if applied.result == Some(false) {
                    sum.failed = true;
                    sum.say(&link.name, &applied.comment.unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}

/// Links whose targets are links come after those.
fn ordered(links: &BTreeMap<String, String>) -> Vec<&String> {
    let mut done: Vec<&String> = Vec::new();
    while done.len() < links.len() {
        let before = done.len();
        for (link, target) in links {
            let points_to = normalized(&joined(parent(link), target));
            let waits = links.contains_key(&points_to) && !done.contains(&&points_to);
            if !waits && !done.contains(&link) {
                done.push(link);
            }
        }
        if done.len() == before {
            // Links in a circle: in any order.
            done.extend(links.keys().filter(|link| !done.contains(link)).collect::<Vec<_>>());
        }
    }
    done
}
