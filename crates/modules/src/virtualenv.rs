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
    pub never_download: bool,
    pub prompt: Option<String>,
    pub symlinks: bool,
    pub upgrade: bool,
    pub user: Option<String>,
    pub env_vars: Dict,
}

/// The tool, and whether it is Python's own `venv`.
fn tool(cx: &Cx, how: &Create) -> Result<(Vec<String>, bool)> {
    let given = how.venv_bin.clone().or_else(|| {
        cx.opt_str("venv_bin").map(|text| text.to_string()).filter(|text| !text.is_empty())
    });
    let python = || how.python.clone().unwrap_or_else(|| "python3".to_owned());
    let of_python = |python: String| (vec![python, "-m".to_owned(), "venv".to_owned()], true);
    match given.as_deref() {
        Some("venv" | "pyvenv") => Ok(of_python(python())),
        Some(name) if name.rsplit('/').next().is_some_and(|name| name.starts_with("python")) => {
            Ok(of_python(name.to_owned()))
        }
        Some(words) if words.trim_end().ends_with("-m venv") => {
            Ok((words.split_whitespace().map(str::to_owned).collect(), true))
        }
        Some(name) => {
            if cx.host.which(name).is_none() {
                return Err(Error::failed(format!("Cannot find the virtualenv tool '{name}'")));
            }
            Ok((vec![name.to_owned()], false))
        }
        None if cx.host.which("virtualenv").is_some() => Ok((vec!["virtualenv".to_owned()], false)),
        None => Ok(of_python(python())),
    }
}

/// Makes an environment.
pub fn make(cx: &Cx, path: &str, how: &Create) -> Result<Ran> {
    let (mut words, own) = tool(cx, how)?;
    if own {
        if how.prompt.is_some() || !how.extra_search_dir.is_empty() || how.never_download {
            return Err(Error::failed(
                "The `prompt`, `extra_search_dir` and `never_download` parameters are not \
                 supported by venv",
            ));
        }
        if how.upgrade {
            words.push("--upgrade".into());
        }
        if how.symlinks {
            words.push("--symlinks".into());
        }
    } else {
        if let Some(python) = how.python.as_deref().filter(|python| !python.trim().is_empty()) {
            if cx.host.which(python).is_none() {
                return Err(Error::failed(format!("Cannot find requested python ({python}).")));
            }
            words.push(format!("--python={python}"));
        }
        for folder in &how.extra_search_dir {
            words.push(format!("--extra-search-dir={folder}"));
        }
        if let Some(prompt) = how.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty()) {
            words.push(format!("--prompt='{prompt}'"));
        }
    }
    if how.clear {
        words.push("--clear".into());
    }
    if how.system_site_packages {
        words.push("--system-site-packages".into());
    }
    words.push(path.to_owned());
    let options =
        Options { runas: how.user.clone(), env: how.env_vars.clone().into(), ..Options::default() };
    cmd::plain(cx, words, options)
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
        never_download: never_download.unwrap_or(false),
        prompt,
        symlinks: symlinks.unwrap_or(false),
        upgrade: upgrade.unwrap_or(false),
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
    let options = Options { runas: user, query: true, ..Options::default() };
    let ran = cmd::plain(cx, [venv_bin.as_str(), "--version"], options)?;
    // `virtualenv 20.24.5 from /usr/lib/…`, or the number alone.
    let number = ran
        .stdout
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let Some(number) = number.filter(|_| ran.ok()) else {
        return Err(Error::failed(format!(
            "Unable to get the virtualenv version output using '{venv_bin}'. Returned data: {}",
            Value::from(ran.to_value()).repr()
        )));
    };
    let parts = number.split('.').map_while(|part| part.parse::<i64>().ok());
    Ok(Value::list(parts))
}
