//! `virtualenv`: virtual environments of Python.
//!
//! The tool is `virtualenv`, if the machine has it, else the `venv` module of Python itself.

use std::path::Path;

use halite_spec::{Cx, Error, Rest, Result, function, module};
use halite_value::{Dict, Value};

use crate::cmd::{self, Options, Ran};

module! {
    /// Make and look at virtual environments of Python.
    "virtualenv": create, get_distribution_path, get_resource_content, get_resource_path,
    get_site_packages, virtualenv_ver,
}

/// How an environment is made.
#[derive(Clone, Debug, Default)]
pub struct Create {
    pub venv_bin: Option<String>,
    pub system_site_packages: bool,
    pub clear: bool,
    pub python: Option<String>,
    pub extra_search_dir: Vec<String>,
    pub never_download: Option<bool>,
    pub prompt: Option<String>,
    pub symlinks: Option<bool>,
    pub upgrade: Option<bool>,
    pub user: Option<String>,
    pub env_vars: Dict,
}

/// What makes environments.
enum Tool {
    /// Python's own module, by the interpreter it is to be run with.
    Module(String),
    /// A program that takes the options of that module.
    Like(String, Vec<String>),
    /// `virtualenv`, or what is called otherwise.
    Virtualenv(String),
}

/// Tells whether a path names an interpreter: `python3`, `/usr/bin/pypy3.10`.
fn is_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let rest = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    rest.is_some_and(|rest| rest.chars().all(|char| char.is_ascii_digit() || char == '.'))
}

impl Tool {
    fn of(cx: &Cx, how: &Create) -> Result<Self> {
        let configured = |value: Option<Value>| {
            value.filter(Value::truthy).map(|value| value.to_str().to_string())
        };
        let given = how
            .venv_bin
            .clone()
            .or_else(|| configured(cx.pillar.get("venv_bin")))
            .or_else(|| configured(cx.opt("venv_bin")));
        let found = || cx.host.which("virtualenv").map(|_| "virtualenv".to_owned());
        let name = given.or_else(found).unwrap_or_else(|| "venv".to_owned());
        let python = how.python.as_deref().filter(|python| !python.trim().is_empty());
        let missing =
            |python: &str| Err(Error::failed(format!("Cannot find requested python ({python}).")));
        if name == "venv" {
            return match python {
                Some(python) if cx.host.which(python).is_none() => missing(python),
                other => Ok(Self::Module(other.unwrap_or("python3").to_owned())),
            };
        }
        if is_interpreter(&name) {
            if python.is_some() {
                return Err(Error::failed(
                    "Pass the target interpreter either as `venv_bin` or as `python`, not both.",
                ));
            }
            return if cx.host.which(&name).is_none() {
                missing(&name)
            } else {
                Ok(Self::Module(name))
            };
        }
        if name.contains("venv") {
            if python.is_some() {
                return Err(unsupported("python", &name));
            }
            let words = name.split_whitespace().map(str::to_owned).collect();
            return Ok(Self::Like(name, words));
        }
        if cx.host.which(&name).is_none() {
            return Err(Error::failed(format!("Cannot find the virtualenv tool '{name}'")));
        }
        match python {
            Some(python) if cx.host.which(python).is_none() => missing(python),
            _ => Ok(Self::Virtualenv(name)),
        }
    }
}

/// An option that the other kind of tool has.
fn unsupported(option: &str, tool: &str) -> Error {
    let dashed = option.replace('_', "-");
    Error::failed(format!("The `{option}`(`--{dashed}`) option is not supported by '{tool}'"))
}

/// The words of a command that takes the options of Python's module.
fn like_the_module(mut words: Vec<String>, name: &str, how: &Create) -> Result<Vec<String>> {
    if !how.extra_search_dir.is_empty() {
        return Err(unsupported("extra_search_dir", name));
    }
    if how.never_download.is_some() {
        return Err(unsupported("never_download", name));
    }
    if how.upgrade == Some(true) {
        words.push("--upgrade".into());
    }
    if how.symlinks == Some(true) {
        words.push("--symlinks".into());
    }
    if let Some(prompt) = how.prompt.as_ref().filter(|prompt| !prompt.trim().is_empty()) {
        words.extend(["--prompt".to_owned(), prompt.clone()]);
    }
    Ok(words)
}

/// The words of a command for `virtualenv`.
fn with_virtualenv(cx: &Cx, name: &str, how: &Create) -> Result<Vec<String>> {
    if how.upgrade.is_some() {
        return Err(unsupported("upgrade", name));
    }
    if how.symlinks.is_some() {
        return Err(unsupported("symlinks", name));
    }
    let mut words = vec![name.to_owned()];
    if let Some(python) = how.python.as_deref().filter(|python| !python.trim().is_empty()) {
        words.push(format!("--python={python}"));
    }
    for folder in &how.extra_search_dir {
        words.push(format!("--extra-search-dir={folder}"));
    }
    if let Some(never) = how.never_download {
        let version = version_of(cx, name, how.user.clone())?;
        // Between these the option was gone.
        if never && !(version >= vec![1, 10] && version < vec![14]) {
            words.push("--never-download".into());
        } else if !never && version >= vec![20] {
            words.push("--download".into());
        }
    }
    if let Some(prompt) = how.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty()) {
        words.push(format!("--prompt='{prompt}'"));
    }
    Ok(words)
}

/// Makes an environment. What a failure leaves behind is removed: it would be taken for one.
pub fn make(cx: &Cx, path: &str, how: &Create) -> Result<Ran> {
    let mut words = match Tool::of(cx, how)? {
        Tool::Module(python) => {
            let words = vec![python.clone(), "-m".to_owned(), "venv".to_owned()];
            let name = how.venv_bin.as_deref().unwrap_or("venv");
            like_the_module(words, name, how)?
        }
        Tool::Like(name, words) => like_the_module(words, &name, how)?,
        Tool::Virtualenv(name) => with_virtualenv(cx, &name, how)?,
    };
    if how.clear {
        words.push("--clear".into());
    }
    if how.system_site_packages {
        words.push("--system-site-packages".into());
    }
    words.push(path.to_owned());
    let options =
        Options { runas: how.user.clone(), env: how.env_vars.clone().into(), ..Options::default() };
    let was_there = cx.host.exists(Path::new(path))?;
    let ran = cmd::plain(cx, words, options)?;
    if !ran.ok() && !was_there && cx.host.is_dir(Path::new(path))? {
        cx.host.remove_all(Path::new(path))?;
    }
    Ok(ran)
}

/// Make a virtual environment; returns the result of the command.
///
/// ```console
/// $ salt '*' virtualenv.create /opt/venv
/// ```
#[function]
pub fn create(
    cx: &Cx,
    /// The folder of the environment.
    path: String,
    /// The tool: `virtualenv`, `venv`, a `python`, or a path.
    venv_bin: Option<String>,
    /// The machine's packages can be seen inside.
    #[default(false)]
    system_site_packages: bool,
    /// Accepted, as Salt does.
    #[default(false)]
    distribute: bool,
    /// Empty the folder first.
    #[default(false)]
    clear: bool,
    /// The Python of the environment.
    python: Option<String>,
    /// Further folders with packages for the start.
    #[default(Vec::new())]
    #[shown(None::<bool>)]
    extra_search_dir: Vec<String>,
    /// Do not fetch anything.
    never_download: Option<bool>,
    /// What the shell shows.
    prompt: Option<String>,
    /// Accepted, as Salt does: pip comes along.
    #[default(false)]
    pip: bool,
    /// Link instead of copying (venv).
    symlinks: Option<bool>,
    /// Bring the environment to a newer Python (venv).
    upgrade: Option<bool>,
    /// The user the tool runs as.
    user: Option<String>,
    /// Accepted, as Salt does.
    #[default(false)]
    use_vt: bool,
    /// Accepted, as Salt does.
    #[default("base".to_owned())]
    saltenv: String,
    /// Accepted, as Salt does; `env_vars`.
    rest: Rest,
) -> Result<Dict> {
    let _ = (distribute, pip, use_vt, saltenv);
    let env_vars = match rest.kwargs.get("env_vars") {
        Some(Value::Dict(vars)) => vars,
        _ => Dict::new(),
    };
    let how = Create {
        venv_bin,
        system_site_packages,
        clear,
        python,
        extra_search_dir,
        never_download,
        prompt,
        symlinks,
        upgrade,
        user,
        env_vars,
    };
    Ok(make(cx, &path, &how)?.to_value())
}

fn python_of(cx: &Cx, venv: &str) -> Result<String> {
    let python = Path::new(venv).join("bin/python");
    if !cx.host.is_file(&python)? {
        return Err(Error::failed("Path does not appear to be a virtualenv"));
    }
    Ok(python.display().to_string())
}

fn ask(cx: &Cx, venv: &str, code: &str, args: &[&str]) -> Result<String> {
    let python = python_of(cx, venv)?;
    let words = [python.as_str(), "-c", code].into_iter().chain(args.iter().copied());
    let ran = cmd::plain(cx, words, Options { query: true, ..Options::default() })?;
    if ran.ok() {
        return Ok(ran.stdout);
    }
    Err(Error::failed(format!("{}\n{}", ran.stdout, ran.stderr)))
}

/// Return the folder of a virtual environment's packages.
///
/// ```console
/// $ salt '*' virtualenv.get_site_packages /opt/venv
/// ```
#[function]
pub fn get_site_packages(
    cx: &Cx,
    /// The folder of the environment.
    venv: String,
) -> Result<String> {
    ask(cx, &venv, "import sysconfig; print(sysconfig.get_path('purelib'))", &[])
}

/// Return where a package is installed in a virtual environment.
///
/// ```console
/// $ salt '*' virtualenv.get_distribution_path /opt/venv my_distribution
/// ```
#[function]
pub fn get_distribution_path(
    cx: &Cx,
    /// The folder of the environment.
    venv: String,
    /// The package.
    distribution: String,
) -> Result<String> {
    let code = "import sys, importlib.metadata as m; \
                print(m.distribution(sys.argv[1]).locate_file(''))";
    ask(cx, &venv, code, &[&distribution])
}

fn resource(
    cx: &Cx,
    venv: &str,
    package: Option<&str>,
    resource: Option<&str>,
    code: &str,
) -> Result<String> {
    let (Some(package), Some(resource)) = (package, resource) else {
        return Err(Error::invalid("Must specify 'package' and 'resource'"));
    };
    ask(cx, venv, code, &[package, resource])
}

/// Return the path of a file that belongs to a package of a virtual environment.
///
/// ```console
/// $ salt '*' virtualenv.get_resource_path /opt/venv my_package my/resource.xml
/// ```
#[function]
pub fn get_resource_path(
    cx: &Cx,
    /// The folder of the environment.
    venv: String,
    /// The package, as it is imported.
    package: Option<String>,
    /// The file, relative to the package.
    resource: Option<String>,
) -> Result<String> {
    let code = "import sys, importlib.resources as r; print(r.files(sys.argv[1]) / sys.argv[2])";
    self::resource(cx, &venv, package.as_deref(), resource.as_deref(), code)
}

/// Return the text of a file that belongs to a package of a virtual environment.
///
/// ```console
/// $ salt '*' virtualenv.get_resource_content /opt/venv my_package my/resource.xml
/// ```
#[function]
pub fn get_resource_content(
    cx: &Cx,
    /// The folder of the environment.
    venv: String,
    /// The package, as it is imported.
    package: Option<String>,
    /// The file, relative to the package.
    resource: Option<String>,
) -> Result<String> {
    let code = "import sys, importlib.resources as r; \
                print((r.files(sys.argv[1]) / sys.argv[2]).read_text())";
    self::resource(cx, &venv, package.as_deref(), resource.as_deref(), code)
}

/// Return the version of the `virtualenv` tool as a list of numbers.
///
/// ```console
/// $ salt '*' virtualenv.virtualenv_ver /usr/bin/virtualenv
/// ```
#[function]
pub fn virtualenv_ver(
    cx: &Cx,
    /// The tool.
    venv_bin: String,
    /// The user the tool runs as.
    user: Option<String>,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<Value> {
    let _ = rest;
    Ok(Value::list(version_of(cx, &venv_bin, user)?))
}

fn version_of(cx: &Cx, tool: &str, user: Option<String>) -> Result<Vec<i64>> {
    let options = Options { runas: user, query: true, ..Options::default() };
    let ran = cmd::plain(cx, [tool, "--version"], options)?;
    // `virtualenv 20.24.5 from /usr/lib/…`, or the number alone.
    let number = ran
        .stdout
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let Some(number) = number.filter(|_| ran.ok()) else {
        return Err(Error::failed(format!(
            "Unable to get the virtualenv version output using '{tool}'. Returned data: {}",
            Value::from(ran.to_value()).repr()
        )));
    };
    Ok(number.split('.').map_while(|part| part.parse::<i64>().ok()).collect())
}
