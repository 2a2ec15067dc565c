//! `test`: functions that show that and how a minion answers.
//!
//! `test.versions*` report the version of Salt we behave as, taken from the grains, beside our own.

use std::time::{Duration, SystemTime};

use halite_spec::{Call, Cx, Error, Rest, Result, alias, function, module};
use halite_value::{BigInt, Dict, Value, dict, entries};

use crate::random;

module! {
    /// Show that and how a minion answers.
    "test": ping, echo, true_, false_, sleep, rand_sleep, arg, kwarg, arg_repr, arg_type, arg_clean,
    exception, raise_exception, retcode, fib, collatz, rand_str, random_hash, version, versions,
    versions_information, versions_report, provider, providers, module_report, not_loaded, opts_pkg,
    get_opts, cross_test, outputter, stack, tty, try_, assertion, attr_call, conf_test,
    deprecation_warning,
}

alias! { rand_str = random_hash, versions = versions_report }

/// Tell that the minion is up: always True. A proxy minion tells whether its device is.
///
/// ```console
/// $ salt web1 test.ping
/// ```
#[function]
pub fn ping(cx: &Cx) -> Result<Value> {
    Ok(cx.call_device("ping", Call::default())?.unwrap_or_else(|| true.into()))
}

/// Return a text as it was given.
///
/// ```console
/// $ salt web1 test.echo 'some text'
/// ```
#[function]
pub fn echo(
    _cx: &Cx,
    /// What to return.
    text: Value,
) -> Result<Value> {
    Ok(text)
}

/// Return True.
///
/// ```console
/// $ salt web1 test.true
/// ```
#[function(name = "true")]
pub fn true_(_cx: &Cx) -> Result<bool> {
    Ok(true)
}

/// Return False.
///
/// ```console
/// $ salt web1 test.false
/// ```
#[function(name = "false")]
pub fn false_(_cx: &Cx) -> Result<bool> {
    Ok(false)
}

/// Wait, then return True.
///
/// ```console
/// $ salt web1 test.sleep 3
/// ```
#[function]
pub fn sleep(
    cx: &Cx,
    /// Seconds to wait.
    length: f64,
) -> Result<bool> {
    let time = Duration::try_from_secs_f64(length)
        .map_err(|_| Error::invalid(format!("cannot sleep for {length} seconds")))?;
    cx.sleep(time)?;
    Ok(true)
}

/// Return the arguments as they arrived.
///
/// ```console
/// $ salt web1 test.arg 1 blue size=2
/// ```
#[function]
pub fn arg(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    Ok(dict! { "args" => Value::tuple(args.args), "kwargs" => args.kwargs })
}

/// Return the keyword arguments as they arrived.
///
/// ```console
/// $ salt web1 test.kwarg size=2 colour=blue
/// ```
#[function]
pub fn kwarg(
    _cx: &Cx,
    /// Anything given by name.
    kwargs: Rest,
) -> Result<Value> {
    if let given @ 1.. = kwargs.args.len() {
        let were = if given == 1 { "was" } else { "were" };
        return Err(Error::raised(
            "TypeError",
            format!("kwarg() takes 0 positional arguments but {given} {were} given"),
        ));
    }
    Ok(kwargs.kwargs.into())
}

/// Return how Python would write the arguments.
///
/// ```console
/// $ salt '*' test.arg_repr 1 "two" 3.1
/// ```
#[function]
pub fn arg_repr(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    let kwargs = Value::from(&args.kwargs).repr();
    Ok(dict! { "args" => Value::tuple(args.args).repr(), "kwargs" => kwargs })
}

/// Return the types of the arguments.
///
/// ```console
/// $ salt web1 test.arg_type 7 blue
/// ```
#[function]
pub fn arg_type(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    let type_of = |value: &Value| format!("<class '{}'>", value.type_name());
    let kwargs: Dict =
        args.kwargs.into_iter().map(|(name, value)| (name, type_of(&value))).collect();
    Ok(dict! { "args" => Value::list(args.args.iter().map(type_of)), "kwargs" => kwargs })
}

/// Fail with an exception.
///
/// ```console
/// $ salt web1 test.exception 'out of tea'
/// ```
#[function]
pub fn exception(
    _cx: &Cx,
    /// What the exception says.
    #[default("Test Exception".to_owned())]
    message: String,
) -> Result<Value> {
    Err(Error::raised("Exception", message))
}

/// Set the return code of the job.
///
/// ```console
/// $ salt web1 test.retcode 3
/// ```
#[function]
pub fn retcode(
    cx: &Cx,
    /// The code.
    #[default(42)]
    code: i64,
) -> Result<bool> {
    cx.job.set_retcode(code);
    Ok(true)
}

/// Wait a random time, then return True.
///
/// ```console
/// $ salt web1 test.rand_sleep 5
/// ```
#[function]
pub fn rand_sleep(
    cx: &Cx,
    /// Seconds to wait at most.
    #[default(60)]
    max: u64,
) -> Result<bool> {
    let time = random::below(cx, max.saturating_add(1))?;
    cx.sleep(Duration::from_secs(time))?;
    Ok(true)
}

/// Return the arguments without those Salt adds.
///
/// ```console
/// $ salt '*' test.arg_clean 1 "two" 3.1
/// ```
#[function]
pub fn arg_clean(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<Value> {
    let clean = |(name, _): &(halite_value::Key, Value)| {
        !name.as_str().is_some_and(|name| name.starts_with("__"))
    };
    let kwargs: Dict = args.kwargs.into_iter().filter(clean).collect();
    Ok(dict! { "args" => Value::list(args.args), "kwargs" => kwargs })
}

/// Fail with an exception of a chosen class.
///
/// ```console
/// $ salt '*' test.raise_exception OSError 2 'No such file'
/// ```
#[function]
pub fn raise_exception(
    _cx: &Cx,
    /// The class; Salt's own as `salt.exceptions.X`.
    name: String,
    /// What the exception is made of.
    args: Rest,
) -> Result<bool> {
    let class = name.strip_prefix("salt.exceptions.").unwrap_or(&name);
    let known = class.ends_with("Error")
        || class.ends_with("Exception")
        || class.ends_with("Warning")
        || matches!(class, "KeyboardInterrupt" | "SystemExit" | "StopIteration" | "GeneratorExit");
    if !known {
        tracing::error!("No such exception: {name}");
        return Ok(false);
    }
    let message = match (class, args.args.as_slice()) {
        (_, []) => String::new(),
        ("OSError" | "IOError", [number, text, ..]) => {
            format!("[Errno {number}] {}", text.to_str())
        }
        (_, [one]) => one.to_string(),
        (_, many) => Value::tuple(many.iter().cloned()).repr(),
    };
    Err(Error::raised(class, message))
}

fn seconds_since(cx: &Cx, start: SystemTime) -> Value {
    Value::Float(cx.host.now().duration_since(start).unwrap_or_default().as_secs_f64())
}

/// Return a Fibonacci number and the seconds it took.
///
/// ```console
/// $ salt web1 test.fib 12
/// ```
#[function]
pub fn fib(
    cx: &Cx,
    /// Which number.
    num: i64,
) -> Result<Value> {
    // Enough for a load test, and a guard against a job that never ends.
    const MOST: i64 = 1_000_000;
    let start = cx.host.now();
    if num < 0 {
        return Err(Error::raised("ValueError", "Negative number is not allowed!"));
    }
    if num > MOST {
        return Err(Error::invalid(format!("{num} is too large; at most {MOST}")));
    }
    let (mut current, mut next) = (BigInt::from(0), BigInt::from(1));
    for _ in 0..num {
        let sum = &current + &next;
        current = std::mem::replace(&mut next, sum);
    }
    Ok(Value::tuple([Value::from_bigint(current), seconds_since(cx, start)]))
}

/// Return the Collatz sequence from a number on, and the seconds it took.
///
/// ```console
/// $ salt web1 test.collatz 27
/// ```
#[function]
pub fn collatz(
    cx: &Cx,
    /// The first number.
    start: i64,
) -> Result<Value> {
    let begin = cx.host.now();
    if start < 1 {
        // differs: Salt never returns from these.
        return Err(Error::invalid("the sequence begins with a positive number"));
    }
    // Salt divides into floats; the first number alone is written as an integer.
    let mut steps = Vec::new();
    let (mut number, mut whole) = (BigInt::from(start), true);
    while number != BigInt::from(1) {
        let shown = Value::from_bigint(number.clone());
        steps.push(if whole { shown } else { Value::Float(shown.as_float().unwrap_or_default()) });
        if number.bit(0) {
            number = number * 3 + 1;
        } else {
            number /= 2;
            whole = false;
        }
    }
    Ok(Value::tuple([Value::from(steps), seconds_since(cx, begin)]))
}

/// Return the hash of random data.
///
/// ```console
/// $ salt web1 test.random_hash
/// ```
#[function]
pub fn random_hash(
    cx: &Cx,
    /// How many values the random number may have.
    #[default(9_999_999_999)]
    size: i64,
    /// The hash: `md5`, `sha1`, `sha256` …; the configured one if none is given.
    hash_type: Option<String>,
) -> Result<String> {
    let kind = hash_type
        .filter(|kind| !kind.is_empty())
        .or_else(|| cx.opt_str("hash_type").map(Into::into))
        .unwrap_or_else(|| "sha256".into());
    let number = random::below(cx, size.unsigned_abs().max(1))?;
    random::digest(&kind, number.to_string().as_bytes())
}

/// The version of Salt we behave as.
fn salt_version(cx: &Cx) -> String {
    let version = cx.grain_str("saltversion");
    if version.is_empty() { "3008.3".into() } else { version.into() }
}

/// Return the version of Salt this minion behaves as.
///
/// ```console
/// $ salt web1 test.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    Ok(salt_version(cx))
}

/// Return the versions of the minion and of the system it runs on.
///
/// ```console
/// $ salt web1 test.versions_information
/// ```
#[function]
pub fn versions_information(cx: &Cx) -> Result<Dict> {
    let grain = |name: &str| cx.grain_str(name);
    let dist =
        format!("{} {} {}", grain("os").to_lowercase(), grain("osrelease"), grain("oscodename"));
    Ok(entries! {
        "Salt Version" => dict! { "Salt" => salt_version(cx) },
        "Halite Version" => dict! { "Halite" => env!("CARGO_PKG_VERSION") },
        "System Versions" => dict! {
            "system" => grain("kernel"), "dist" => dist.trim(), "release" => grain("kernelrelease"),
            "machine" => grain("cpuarch"),
            "version" => format!("{} {} {}", grain("osfullname"), grain("osrelease"), grain("oscodename")).trim(),
            "locale" => "utf-8",
        },
    })
}

/// Return the versions as text.
///
/// ```console
/// $ salt web1 test.versions_report
/// ```
#[function]
pub fn versions_report(cx: &Cx) -> Result<String> {
    let mut lines = Vec::new();
    for (title, rows) in &versions_information(cx)? {
        lines.push(format!("{title}:"));
        let mut rows: Vec<_> = rows.as_dict().into_iter().flatten().collect();
        rows.sort_by_key(|(name, _)| name.to_str().to_lowercase());
        for (name, value) in rows {
            lines.push(format!("{:>14}: {value}", name.to_str()));
        }
        lines.push(" ".into());
    }
    Ok(lines.join("\n"))
}

/// The file behind a virtual module, as Salt names it.
fn provider_of(cx: &Cx, module: &str) -> String {
    let family = cx.grain_str("os_family");
    let systemd = crate::service::is_booted(cx);
    let linux = cx.grain_str("kernel") == "Linux";
    let name = match (module, family.as_str()) {
        ("pkg", "Debian") => "aptpkg",
        ("pkg", "RedHat") => "yumpkg",
        ("pkg", "Suse") => "zypperpkg",
        ("pkg", "Arch") => "pacmanpkg",
        ("pkg", "Alpine") => "apkpkg",
        ("service", _) if systemd => "systemd_service",
        ("service", "Debian") => "debian_service",
        ("service", "Alpine" | "Gentoo") => "gentoo_service",
        ("service", "RedHat") => "rh_service",
        ("service", _) => "service",
        ("lowpkg", "Debian") => "dpkg_lowpkg",
        ("lowpkg", _) => "rpm_lowpkg",
        ("user", _) if linux => "useradd",
        ("group", _) if linux => "groupadd",
        ("shadow", _) if linux => "linux_shadow",
        ("sysctl", _) if linux => "linux_sysctl",
        ("ip", "Debian") => "debian_ip",
        ("ip", "RedHat") => "rh_ip",
        ("acl", _) if linux => "linux_acl",
        ("lvm", _) if linux => "linux_lvm",
        ("cmd", _) => "cmdmod",
        ("sys", _) => "sysmod",
        ("random", _) => "mod_random",
        ("locale", _) => "localemod",
        ("config", _) => "config",
        ("ini", _) => "ini_manage",
        ("event", _) => "event",
        ("pkg_resource", _) => "pkg_resource",
        ("virtualenv", _) => "virtualenv_mod",
        ("debconf", _) => "debconfmod",
        ("at", _) => "at",
        (other, _) => other,
    };
    name.to_owned()
}

/// Return the name of the file behind a module.
///
/// ```console
/// $ salt web1 test.provider pkg
/// ```
#[function]
pub fn provider(
    cx: &Cx,
    /// The module.
    module: String,
) -> Result<String> {
    let prefix = format!("{module}.");
    let there = cx.runtime.function_names(cx).iter().any(|name| name.starts_with(&prefix));
    Ok(if there { provider_of(cx, &module) } else { String::new() })
}

fn module_names(cx: &Cx) -> Vec<String> {
    let functions = cx.runtime.function_names(cx);
    let mut modules: Vec<String> = functions
        .iter()
        .filter_map(|name| name.split_once('.'))
        .map(|(module, _)| module.to_owned())
        .collect();
    modules.sort();
    modules.dedup();
    modules
}

/// Return the file behind every module.
///
/// ```console
/// $ salt web1 test.providers
/// ```
#[function]
pub fn providers(cx: &Cx) -> Result<Dict> {
    Ok(module_names(cx).into_iter().map(|module| (provider_of(cx, &module), module)).collect())
}

/// Return every function and module the minion has.
///
/// ```console
/// $ salt web1 test.module_report
/// ```
#[function]
pub fn module_report(cx: &Cx) -> Result<Dict> {
    let functions = Value::list(cx.runtime.function_names(cx));
    let modules = Value::list(module_names(cx));
    let none = || Value::list(Vec::<Value>::new());
    Ok(entries! {
        "functions" => &functions, "function_attrs" => &functions, "function_subs" => &functions,
        "modules" => &modules, "module_attrs" => &modules, "missing_attrs" => none(),
        "missing_subs" => none(),
    })
}

/// Return the modules that are there but not usable on this machine; all are usable here.
///
/// ```console
/// $ salt web1 test.not_loaded
/// ```
#[function]
pub fn not_loaded(_cx: &Cx) -> Result<Vec<String>> {
    Ok(Vec::new())
}

/// Return the configuration with the grains.
///
/// ```console
/// $ salt web1 test.opts_pkg
/// ```
#[function]
pub fn opts_pkg(cx: &Cx) -> Result<Dict> {
    let opts = cx.opts.shallow_copy();
    opts.insert("grains", &cx.grains);
    Ok(opts)
}

/// Return the configuration.
///
/// ```console
/// $ salt web1 test.get_opts
/// ```
#[function]
pub fn get_opts(cx: &Cx) -> Result<Dict> {
    Ok(cx.opts.shallow_copy())
}

/// Call another function with a list of arguments.
///
/// ```console
/// $ salt web1 test.cross_test sys.argspec '[test.ping]'
/// ```
#[function]
pub fn cross_test(
    cx: &Cx,
    /// The function.
    func: String,
    /// Its arguments.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    args: Vec<Value>,
) -> Result<Value> {
    cx.call(&func, Call::of(args))
}

/// Return data as it was given, to see how it is shown.
///
/// ```console
/// $ salt web1 test.outputter '{colour: blue}'
/// ```
#[function]
pub fn outputter(
    _cx: &Cx,
    /// What to return.
    data: Value,
) -> Result<Value> {
    Ok(data)
}

/// Return where the minion stands: the job and the function that runs.
///
/// ```console
/// $ salt web1 test.stack
/// ```
#[function]
pub fn stack(cx: &Cx) -> Result<String> {
    Ok(format!("  job {}, in {}\n    test.stack()\n", cx.job.jid, cx.job.fun))
}

/// Say that the function is elsewhere.
///
/// ```console
/// $ salt web1 test.tty tty1 'Lunch is ready'
/// ```
#[function]
pub fn tty(
    _cx: &Cx,
    /// Anything.
    args: Rest,
) -> Result<&'static str> {
    let _ = args;
    Ok("ERROR: This function has been moved to cmd.tty")
}

/// Call a function and return None where it fails.
///
/// ```console
/// $ salt '*' test.try test.exception
/// ```
#[function(name = "try")]
pub fn try_(
    cx: &Cx,
    /// The function.
    module: String,
    /// Return what the failure said, not None.
    #[default(false)]
    return_try_exception: bool,
    /// Its arguments.
    #[arg(by_name)]
    args: Rest,
) -> Result<Value> {
    let answer = cx.call(&module, Call { args: args.args, kwargs: args.kwargs });
    Ok(match answer {
        Ok(value) => value,
        Err(error) if return_try_exception => error.to_string().into(),
        Err(_) => Value::Null,
    })
}

/// Fail unless the argument is true.
///
/// ```console
/// $ salt web1 test.assertion True
/// ```
#[function]
pub fn assertion(
    _cx: &Cx,
    /// Anything.
    assertion: Value,
) -> Result<()> {
    if assertion.truthy() {
        return Ok(());
    }
    Err(Error::raised("AssertionError", String::new()))
}

/// Return the grains, called as an attribute.
///
/// ```console
/// $ salt web1 test.attr_call
/// ```
#[function]
pub fn attr_call(cx: &Cx) -> Result<Dict> {
    crate::grains::items(cx, false)
}

/// Return the option `test.foo`.
///
/// ```console
/// $ salt web1 test.conf_test
/// ```
#[function]
pub fn conf_test(cx: &Cx) -> Result<Value> {
    crate::config::option(
        cx,
        "test.foo".into(),
        "".into(),
        false,
        false,
        false,
        false,
        false,
        false,
    )
}

/// Warn of something that will go away, as Salt warns of it: at the console, whatever the log level.
///
/// ```console
/// $ salt web1 test.deprecation_warning
/// ```
#[function]
pub fn deprecation_warning(_cx: &Cx) -> Result<bool> {
    tracing::warn!(
        target: "warnings",
        "DeprecationWarning: This is a test deprecation warning by version."
    );
    tracing::warn!(
        target: "warnings",
        "DeprecationWarning: This is a test deprecation warning by date very far into the future \
         (3000-01-01)."
    );
    Ok(true)
}
