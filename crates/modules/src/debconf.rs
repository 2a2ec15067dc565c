//! `debconf`: answers to the questions Debian packages ask when they are configured.

use std::path::Path;

use halite_spec::{Cx, Error, Need, Rest, Result, Template, function, host::Write, module};
use halite_value::{Dict, List, Value, list};

use crate::cmd::{self, Options};

module! {
    /// Answer the questions Debian packages ask when they are configured.
    "debconf", needs = [
        Need::program(&["debconf-get-selections"], "The debconfmod module could not be loaded: debconf-utils is not installed."),
    ]: get_selections, show, set_, set_template, set_file,
}

fn check(cx: &Cx, function: &str) -> Result<()> {
    let reason = if cx.grain_str("os_family") != "Debian" {
        "The debconfmod module could not be loaded: unsupported OS family"
    } else if cx.host.which("debconf-get-selections").is_none() {
        "The debconfmod module could not be loaded: debconf-utils is not installed."
    } else {
        return Ok(());
    };
    Err(Error::Unavailable { function: format!("debconf.{function}"), reason: reason.into() })
}

/// Reads `package question type value` lines.
fn unpack(text: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut rest = line;
        let mut word = || {
            let (word, more) = rest.split_once(['\t', ' '])?;
            rest = more.trim_start_matches(['\t', ' ']);
            (!word.is_empty()).then_some(word)
        };
        let (Some(package), Some(question)) = (word(), word()) else { continue };
        let (kind, value) = rest.split_once(['\t', ' ']).unwrap_or((rest, ""));
        if kind.is_empty() || package.len() < 2 {
            continue;
        }
        let value = value.trim_start_matches(['\t', ' ']);
        found.push((package.to_owned(), list![question, kind, value]));
    }
    found
}

/// All answers: package → list of question, type, value.
pub fn selections(cx: &Cx, fetch_empty: bool) -> Result<Dict> {
    check(cx, "get_selections")?;
    let how = Options { query: true, ..Options::default() };
    let ran = cmd::plain(cx, ["debconf-get-selections"], how)?;
    let ret = Dict::new();
    for (package, answer) in unpack(&ran.stdout) {
        let value = answer.as_list().and_then(|list| list.get(2)).unwrap_or_default();
        if (fetch_empty || value.truthy())
            && let Value::List(all) = ret.get_or_insert_with(package, || List::new().into())
        {
            all.push(answer);
        }
    }
    Ok(ret)
}

/// Sets one answer.
pub fn set_answer(cx: &Cx, package: &str, question: &str, kind: &str, value: &str) -> Result<()> {
    check(cx, "set")?;
    let line = format!("{package} {question} {kind} {value}");
    let how = Options { stdin: Some(line), stdin_raw_newlines: true, ..Options::default() };
    cmd::plain(cx, ["debconf-set-selections"], how)?;
    Ok(())
}

/// Sets the answers of a file; false if it is not there.
pub fn load(cx: &Cx, source: &str, saltenv: &str) -> Result<bool> {
    check(cx, "set_file")?;
    let Some(file) = cx.files.cache(source, saltenv)? else { return Ok(false) };
    load_local(cx, &file)?;
    Ok(true)
}

fn load_local(cx: &Cx, file: &Path) -> Result<()> {
    let file = file.display().to_string();
    cmd::plain(cx, ["debconf-set-selections", &file], Options::default())?;
    Ok(())
}

/// Return all answers: package → list of question, type and value.
///
/// ```console
/// $ salt web1 debconf.get_selections
/// ```
#[function]
pub fn get_selections(
    cx: &Cx,
    /// Return empty answers, too.
    #[default(true)]
    fetchempty: bool,
) -> Result<Dict> {
    selections(cx, fetchempty)
}

/// Return the answers of one package; None if it has none.
///
/// ```console
/// $ salt '*' debconf.show locales
/// ```
#[function]
pub fn show(
    cx: &Cx,
    /// The package.
    name: String,
) -> Result<Option<Value>> {
    Ok(selections(cx, true)?.get(name.as_str()))
}

/// Set an answer.
///
/// ```console
/// $ salt '*' debconf.set tzdata tzdata/Areas select Europe
/// ```
#[function(name = "set")]
pub fn set_(
    cx: &Cx,
    /// The package.
    package: String,
    /// The question.
    question: String,
    /// The type of the answer: `select`, `boolean`, `string` …
    r#type: String,
    /// The answer.
    value: String,
    /// More words of the answer.
    extra: Rest,
) -> Result<bool> {
    let mut words = vec![value];
    words.extend(extra.args.iter().map(Value::to_string));
    set_answer(cx, &package, &question, &r#type, &words.join(" "))?;
    Ok(true)
}

/// Render a file and set the answers in it.
///
/// ```console
/// $ salt web1 debconf.set_template salt://app/debconf jinja
/// ```
#[function]
pub fn set_template(
    cx: &Cx,
    /// Where the file is.
    path: String,
    /// The template engine.
    template: String,
    /// Names for the template.
    #[default(Dict::new())]
    context: Dict,
    /// Names for the template that `context` may replace.
    #[default(Dict::new())]
    defaults: Dict,
    /// The environment the file comes from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    check(cx, "set_template")?;
    let Some(file) = cx.files.cache(&path, &saltenv)? else { return Ok(false) };
    let names = defaults.shallow_copy();
    names.update(&context);
    let template = Template {
        engine: template,
        text: cx.host.read_text(&file)?,
        source: Some(path),
        saltenv,
        sls: None,
        context: names,
    };
    let text = cx.runtime.render(cx, &template)?;
    let scratch = cmd::scratch_path(cx, None, ".selections");
    cx.host.write(&scratch, text.as_bytes(), &Write { mode: Some(0o600), ..Write::default() })?;
    let done = load_local(cx, &scratch);
    cx.host.remove_file(&scratch)?;
    done?;
    Ok(true)
}

/// Set the answers of a file.
///
/// ```console
/// $ salt web1 debconf.set_file /srv/app/debconf
/// ```
#[function]
pub fn set_file(
    cx: &Cx,
    /// Where the file is.
    path: String,
    /// The environment the file comes from.
    #[default("base".to_owned())]
    saltenv: String,
    /// Accepted, as Salt does.
    rest: Rest,
) -> Result<bool> {
    let _ = rest;
    load(cx, &path, &saltenv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let text = "# tzdata\ntzdata\ttzdata/Areas\tselect\tEtc\nlocales  locales/x multiselect a, b\n\
                    x/y\tz\tnote\t\n";
        let found = unpack(text);
        assert_eq!(found.first().unwrap().1, list!["tzdata/Areas", "select", "Etc"]);
        assert_eq!(found.get(1).unwrap().1, list!["locales/x", "multiselect", "a, b"]);
        assert_eq!(found.get(2).unwrap().1, list!["z", "note", ""]);
    }
}
