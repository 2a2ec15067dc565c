//! From SLS names to high data: files are found, rendered and read, includes followed.
//!
//! A [`Loader`] works off a list of names and includes, each file with all it includes before the
//! next, and leaves a [`Tree`]: a node for each SLS (each is rendered once). What the tree means is
//! decided when it is finished. Problems are collected, not thrown: one run shows them all.

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap, HashSet},
    path::PathBuf,
    rc::Rc,
};

use halite_spec::{Cx, Error, Result, Template, utf8};
use halite_target::fnmatch;
use halite_value::{Dict, Place, Value, entries, suggest};

pub(crate) use crate::places::Places;
use crate::{
    High, Problem,
    parse::{Include, Sls},
    tree::{Node, ROOT, Step, Tree},
};

/// What gathering yields.
#[derive(Default)]
pub struct Gathered {
    pub high: High,
    pub problems: Vec<Problem>,
    /// Where each id was declared.
    pub places: Places,
}

impl Gathered {
    /// Takes a rendered template as high data, as `state.template` does: no includes, no SLS name.
    pub fn of_template(rendered: &Dict, path: Option<&str>) -> Self {
        let rendered = rendered.deep_copy();
        let mut places = Places::default();
        places.note(&rendered);
        let (high, problems) = High::of_template(&rendered, path);
        Self { high, problems, places }
    }
}

/// Returns the names of the SLS files of an environment in their order, so that a package comes
/// before what is in it.
pub fn available(cx: &Cx, saltenv: &str) -> Result<Vec<String>> {
    let names: BTreeSet<String> = cx
        .files
        .list(saltenv, "")?
        .iter()
        .filter_map(|path| path.strip_suffix(".sls"))
        .filter(|path| !path.contains('.'))
        .map(|path| path.strip_suffix("/init").unwrap_or(path).replace('/', "."))
        .collect();
    Ok(names.into_iter().collect())
}

/// Where a top file names each SLS: (environment, name) → place.
pub type Named = HashMap<(String, String), Place>;

/// Renders the SLS files named for each environment (globs allowed) into one high data.
pub fn gather(cx: &Cx, matches: &[(String, Vec<String>)]) -> Gathered {
    gather_named(cx, matches, &Named::new())
}

/// As [`gather`], when a top file named them.
pub fn gather_named(cx: &Cx, matches: &[(String, Vec<String>)], named: &Named) -> Gathered {
    let mut loader = Loader::new(cx, matches, named);
    while let Some(task) = loader.todo.pop() {
        loader.work(task);
    }
    let Loader { tree, places, .. } = loader;
    let is_numbered = cx.opt("state_auto_order").is_none_or(|auto| auto.truthy());
    let (high, problems) = tree.into_high(&places, is_numbered);
    Gathered { high, problems, places }
}

/// A file to load for a node.
#[derive(Clone)]
struct Wanted {
    by: usize,
    sls: String,
    env: String,
    /// Where an include asks for it.
    asked: Option<Place>,
}

enum Task {
    /// Load what a name or a glob of the command line or the top file matches.
    Name(Wanted),
    Include(usize, Include),
    Load(Wanted),
}

/// The SLS files of an environment.
#[derive(Default)]
struct Catalog {
    names: Vec<String>,
    known: HashSet<String>,
}

impl Catalog {
    /// Returns the names a glob matches.
    fn matching(&self, glob: &str) -> Vec<String> {
        if !fnmatch::is_pattern(glob) {
            return self.known.get(glob).cloned().into_iter().collect();
        }
        let glob = fnmatch::Glob::new(glob);
        self.names.iter().filter(|name| glob.matches(name)).cloned().collect()
    }

    fn has(&self, glob: &str) -> bool {
        !self.matching(glob).is_empty()
    }
}

struct Loader<'a> {
    cx: &'a Cx,
    /// The environments asked for; includes marked `_xenv` are looked up in all of them.
    envs: Vec<String>,
    named: &'a Named,
    /// The environments there are, if it is known; asked for by the first include.
    served: OnceCell<Option<Vec<String>>>,
    catalogs: HashMap<String, Rc<Catalog>>,
    /// (environment, SLS)
    loaded: HashSet<(String, String)>,
    /// What is still to be done, the next at the end.
    todo: Vec<Task>,
    tree: Tree,
    places: Places,
}

impl<'a> Loader<'a> {
    fn new(cx: &'a Cx, matches: &[(String, Vec<String>)], named: &'a Named) -> Self {
        let asked = matches.iter().flat_map(|(env, names)| {
            names.iter().map(move |sls| {
                let (sls, env) = (sls.clone(), env.clone());
                Task::Name(Wanted { by: ROOT, sls, env, asked: None })
            })
        });
        let mut todo: Vec<Task> = asked.collect();
        todo.reverse();
        Self {
            cx,
            envs: matches.iter().map(|(env, _)| env.clone()).collect(),
            named,
            served: OnceCell::new(),
            catalogs: HashMap::new(),
            loaded: HashSet::new(),
            todo,
            tree: Tree::default(),
            places: Places::default(),
        }
    }

    fn work(&mut self, task: Task) {
        let done = match task {
            Task::Name(wanted) => {
                let env = wanted.env.clone();
                if let Some(problem) = self.no_such_env(&wanted) {
                    self.report(ROOT, problem);
                }
                self.expand(&env, &wanted);
                return;
            }
            Task::Include(by, include) => self
                .include(by, &include)
                .map_err(|text| (by, Problem::new(text).at(include.place.as_ref()))),
            Task::Load(wanted) => {
                for problem in self.load(&wanted).err().into_iter().flatten() {
                    self.report(wanted.by, problem);
                }
                return;
            }
        };
        if let Err((node, problem)) = done {
            self.report(node, problem);
        }
    }

    /// Says that there is no environment of that name. Its SLS are tried nevertheless, and missed.
    fn no_such_env(&self, wanted: &Wanted) -> Option<Problem> {
        let Wanted { sls, env, .. } = wanted;
        if env == "base" || self.serves(env) {
            return None;
        }
        let text = format!("No matching salt environment for environment '{env}' found");
        Some(Problem::new(text).at(self.named.get(&(env.clone(), sls.clone()))))
    }

    fn report(&mut self, node: usize, problem: Problem) {
        tracing::error!("{problem}");
        self.tree.nodes[node].steps.push(Step::Problem(problem));
    }

    fn catalog(&mut self, env: &str) -> Rc<Catalog> {
        if let Some(catalog) = self.catalogs.get(env) {
            return Rc::clone(catalog);
        }
        let names = available(self.cx, env).unwrap_or_default();
        let known = names.iter().cloned().collect();
        let catalog = Rc::new(Catalog { names, known });
        self.catalogs.insert(env.to_owned(), Rc::clone(&catalog));
        catalog
    }

    /// Has every SLS loaded that a name matches among those of an environment; one that matches
    /// none is tried as it is, and reported there.
    fn expand(&mut self, among: &str, wanted: &Wanted) {
        let mut found = self.catalog(among).matching(&wanted.sls);
        if found.is_empty() {
            found.push(wanted.sls.clone());
        }
        let loads = found.into_iter().rev().map(|sls| Task::Load(Wanted { sls, ..wanted.clone() }));
        self.todo.extend(loads);
    }

    /// Has an include loaded, or says why not.
    fn include(&mut self, by: usize, include: &Include) -> Result<(), String> {
        let Node { sls, env: own_env, is_init, .. } = &self.tree.nodes[by];
        let (sls, own_env, is_init) = (sls.clone(), own_env.clone(), *is_init);
        let env = include.env.as_ref().unwrap_or(&own_env);
        let Some(name) = absolute(&include.name, &sls, is_init) else {
            return Err(format!(
                "Attempted relative include of '{}' within SLS '{own_env}:{sls}' goes beyond top \
                 level package ",
                include.name
            ));
        };
        let is_everywhere = env == "_xenv";
        if !is_everywhere && !self.serves(env) {
            return Err(format!(
                "Nonexistent saltenv '{env}' found in include of '{name}' within SLS \
                 '{own_env}:{sls}'"
            ));
        }
        let envs = if is_everywhere { self.envs.clone() } else { vec![env.clone()] };
        let is_asked_for = !is_everywhere && self.envs.contains(env);
        let holding: Vec<String> = envs
            .iter()
            .filter(|env| is_asked_for || self.catalog(env).has(&name))
            .cloned()
            .collect();
        let from = match holding.as_slice() {
            [one] => one.clone(),
            several if several.contains(&own_env) => own_env.clone(),
            [] => {
                return Err(format!(
                    "Unknown include: Specified SLS {env}: {name} is not available on the salt \
                     master in saltenv(s): {} ",
                    envs.join(", ")
                ));
            }
            several => {
                return Err(format!(
                    "Ambiguous include: Specified SLS {env}: {name} is available on the salt \
                     master in multiple available saltenvs: {}",
                    several.join(", ")
                ));
            }
        };
        let asked = include.place.clone().unwrap_or_else(|| Place::new(sls, 1, 0));
        // Salt takes the names from the environment of the file that includes.
        self.expand(&own_env, &Wanted { by, sls: name, env: from, asked: Some(asked) });
        Ok(())
    }

    /// Renders and reads one SLS, unless it was loaded before.
    fn load(&mut self, wanted: &Wanted) -> Result<(), Vec<Problem>> {
        let Wanted { by, sls, env, .. } = wanted;
        if self.loaded.contains(&(env.clone(), sls.clone())) {
            return Ok(());
        }
        let Some((file, path)) = self.find(wanted) else {
            let problem = self.missing(wanted);
            if wanted.asked.is_some() {
                return Err(vec![problem]);
            }
            // As in Salt, what was asked for by hand or in the top file is told in the answer alone.
            self.tree.nodes[*by].steps.push(Step::Problem(problem));
            return Ok(());
        };
        self.loaded.insert((env.clone(), sls.clone()));
        let rendered = render(self.cx, wanted, &file, &path)?;
        self.places.note(&rendered);
        let (mut own, problems) = Sls::read(&rendered, (sls, env), &mut self.tree.bodies);
        let node = self.tree.nodes.len();
        let includes = std::mem::take(&mut own.includes).into_iter().rev();
        self.todo.extend(includes.map(|include| Task::Include(node, include)));
        self.tree.nodes.push(Node {
            sls: sls.clone(),
            env: env.clone(),
            is_init: path.ends_with("/init.sls"),
            parent: *by,
            own,
            steps: Vec::new(),
        });
        self.tree.nodes[*by].steps.push(Step::Include(node));
        problems.into_iter().for_each(|problem| self.report(node, problem));
        Ok(())
    }

    /// Finds the file of an SLS, and its path in the tree.
    fn find(&mut self, wanted: &Wanted) -> Option<(PathBuf, String)> {
        let base = wanted.sls.replace('.', "/");
        [format!("{base}.sls"), format!("{base}/init.sls")].into_iter().find_map(|path| match self
            .cx
            .files
            .cache(&format!("salt://{path}"), &wanted.env)
        {
            Ok(file) => file.map(|file| (file, path)),
            Err(error) => {
                let problem = Problem::new(error.to_string());
                self.tree.nodes[wanted.by].steps.push(Step::Problem(problem));
                None
            }
        })
    }

    /// Tells whether there is such an environment; yes if nobody can say.
    fn serves(&self, env: &str) -> bool {
        let served = self.served.get_or_init(|| self.cx.files.envs().ok()).as_ref();
        served.is_none_or(|envs| envs.iter().any(|own| own == env || own == "__env__"))
    }

    fn missing(&mut self, wanted: &Wanted) -> Problem {
        let Wanted { sls, env, asked, .. } = wanted;
        let text = if asked.is_some() {
            format!(
                "Specified SLS {sls} in saltenv {env} is not available on the salt master or \
                 through a configured fileserver"
            )
        } else {
            format!("No matching sls found for '{sls}' in env '{env}'")
        };
        let named = || self.named.get(&(env.clone(), sls.clone()));
        let problem = Problem::new(text).at(asked.as_ref().or_else(named));
        let envs = self.cx.files.envs().unwrap_or_default();
        let near_env = suggest::nearest(env, envs.iter().map(String::as_str));
        if let Some(near) = near_env.filter(|_| !envs.iter().any(|known| known == env)) {
            return problem
                .help(format!("no environment is named `{env}`; did you mean `{near}`?"));
        }
        let catalog = self.catalog(env);
        if let Some(meant) = catalog.known.get(&as_name(sls)) {
            if meant == sls {
                return problem.help("its file is there, but is a link in circles or no file");
            }
            return problem.help(format!(
                "an SLS is named by dots and without `.sls`; did you mean `{meant}`?"
            ));
        }
        match suggest::nearest(sls, catalog.names.iter().map(String::as_str)) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        }
    }
}

/// Renders an SLS into a dict of its own.
fn render(
    cx: &Cx,
    wanted: &Wanted,
    file: &std::path::Path,
    path: &str,
) -> Result<Dict, Vec<Problem>> {
    let Wanted { sls, env, .. } = wanted;
    let failed = |error: &dyn std::fmt::Display| {
        Problem::new(format!("Rendering SLS '{env}:{sls}' failed: {error}"))
    };
    let content = cx.host.read(file).map_err(|error| vec![failed(&error)])?;
    let text = utf8(content).map_err(|error| {
        let text = format!("Rendering SLS {sls} failed, render error: {error}");
        vec![Problem::new(text).at(Some(&Place::new(path, error.line, 0)))]
    })?;
    let template = Template {
        engine: cx.opt_str("renderer").map_or_else(|| "jinja|yaml".into(), Into::into),
        text,
        source: Some(path.to_owned()),
        saltenv: env.clone(),
        sls: Some(sls.clone()),
        context: entries! { "tplpath" => file.to_string_lossy().into_owned() },
    };
    match cx.runtime.compile(cx, &template) {
        Ok(Value::Dict(rendered)) => Ok(rendered),
        Ok(value) if !value.truthy() => Ok(Dict::new()),
        Ok(other) => {
            let text = format!("SLS {sls} does not render to a dictionary");
            let contents = format!("Error when rendering state with contents: {other}");
            let problem = Problem::new(text).at(Some(&Place::new(path, 1, 0)));
            Err(vec![problem, Problem::new(contents)])
        }
        Err(error) => {
            let mut problem = match &error {
                Error::Source { class: Some(_), .. } => {
                    Problem::new(format!("Rendering SLS {sls} failed, render error: {error}"))
                }
                _ => failed(&error),
            };
            if let Error::Source { place, help, .. } = error {
                (problem.place, problem.help) = (place, help);
            }
            Err(vec![problem])
        }
    }
}

/// The name of an SLS that was written as a path or an address.
fn as_name(sls: &str) -> String {
    let path = sls.strip_prefix("salt://").unwrap_or(sls).trim_matches('/');
    let path = path.strip_suffix(".sls").unwrap_or(path);
    path.strip_suffix("/init").unwrap_or(path).replace('/', ".")
}

/// Makes `.name` and `..name` absolute; `None` when it climbs above the root.
fn absolute(name: &str, sls: &str, is_init: bool) -> Option<String> {
    let rest = name.trim_start_matches('.');
    let levels = name.len() - rest.len();
    if levels == 0 {
        return Some(name.to_owned());
    }
    let parts: Vec<&str> = sls.split('.').chain(is_init.then_some("init")).collect();
    let kept = parts.len().checked_sub(levels)?;
    let steps = parts.into_iter().take(kept).chain([rest]);
    Some(steps.collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use halite_testkit::Kit;

    use super::*;

    fn gathered(files: &[(&str, &str)], name: &str) -> Gathered {
        let kit = Kit::new().serving(files);
        gather(&kit.cx, &[("base".into(), vec![name.into()])])
    }

    fn text(value: Option<Value>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_included_runs_first_and_is_shown_last() {
        let files = [
            ("a.sls", "include: [b, c]\nx: test.nop"),
            ("b.sls", "include: [c]\ny: test.nop"),
            ("c.sls", "z: test.nop"),
        ];
        let high = Dict::from(&gathered(&files, "a").high);
        let shown: Vec<String> = (&high)
            .into_iter()
            .map(|(id, body)| {
                let args = body.get("test").and_then(|args| args.items_of_sequence());
                let order = args.unwrap_or_default().iter().find_map(|arg| arg.get("order"));
                format!("{id} {} {}", text(order), text(body.get("__sls_included_from__")))
            })
            .collect();
        assert_eq!(shown, ["x 10002 ", "y 10001 ['a']", "z 10000 ['b', 'a']"]);
    }

    #[test]
    fn a_path_is_told_its_name() {
        for (written, name) in [
            ("a.sls", "a"),
            ("salt://a/b.sls", "a.b"),
            ("a/init.sls", "a"),
            ("/a/b/", "a.b"),
            ("a.b", "a.b"),
        ] {
            assert_eq!(as_name(written), name);
        }
        let problems = gathered(&[("app/db.sls", "x: test.nop")], "app/db.sls").problems;
        let told = problems.iter().map(ToString::to_string).collect::<String>();
        assert!(told.contains("did you mean `app.db`?"), "{told}");
    }

    #[test]
    fn accidents_of_renderers_are_told_as_such() {
        let told = |body: &str| {
            let problems = gathered(&[("a.sls", body)], "a").problems;
            problems.first().map(|problem| problem.text.clone()).unwrap_or_default()
        };
        let accident = told("a: *nowhere");
        let words = "Rendering SLS a failed, render error: found undefined alias";
        assert!(accident.starts_with(words), "{accident}");
        let mistake = told("a: b: c");
        assert!(mistake.starts_with("Rendering SLS 'base:a' failed: mapping"), "{mistake}");
    }

    #[test]
    fn a_glob_takes_a_package_before_what_is_in_it() {
        let files = [
            ("p/init.sls", "include: ['.*']"),
            ("p/x/a.sls", "a: test.nop"),
            ("p/x/b.sls", "b: test.nop"),
            ("p/x/init.sls", "include: [.b]"),
        ];
        let high = Dict::from(&gathered(&files, "p").high);
        let order = |id: &str| {
            let args = high.get(id).and_then(|body| body.get("test")?.items_of_sequence());
            text(args.unwrap_or_default().iter().find_map(|arg| arg.get("order")))
        };
        assert_eq!([order("b"), order("a")], ["10000", "10001"]);
    }

    #[test]
    fn problems_come_as_a_reader_meets_them() {
        let files =
            [("a.sls", "include: [b, nope]\nx: test.nop\ny: 3"), ("b.sls", "x: test.nop\nz: 4")];
        let problems = gathered(&files, "a").problems;
        let told: Vec<&str> =
            problems.iter().filter_map(|problem| problem.text.lines().next()).collect();
        let expected = [
            "ID y in SLS a is not a dictionary",
            "ID z in SLS b is not a dictionary",
            "Detected conflicting IDs, SLS IDs need to be globally unique.",
            "Specified SLS nope in saltenv base is not available on the salt master or through a \
             configured fileserver",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn relative_names() {
        assert_eq!(absolute(".b", "x.a", false), Some("x.b".into()));
        assert_eq!(absolute(".b", "x", true), Some("x.b".into()));
        assert_eq!(absolute("..b", "x.a", false), Some("b".into()));
        assert_eq!(absolute("...b", "x.a", false), None);
    }
}
