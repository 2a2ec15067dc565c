//! `locale`: languages of the machine (Salt's `localemod`).

use std::path::Path;

use halite_spec::{Command, Cx, Error, Rest, Result, function, host::Write, module};
use halite_value::Value;

use crate::file::text::read_to_edit_if_there;

module! {
    /// Languages of the machine.
    "locale": list_avail, get_locale, set_locale, avail, gen_locale,
}

/// The parts of `de_DE.UTF-8 UTF-8@euro`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    language: String,
    territory: String,
    codeset: String,
    modifier: String,
    charmap: String,
}

impl Parts {
    fn read(locale: &str) -> Self {
        let mut parts = Self::default();
        let mut rest = locale;
        if let Some((before, charmap)) = rest.split_once(' ') {
            (rest, parts.charmap) = (before, charmap.to_owned());
        }
        if let Some((before, modifier)) = rest.split_once('@') {
            (rest, parts.modifier) = (before, modifier.to_owned());
        }
        if let Some((before, codeset)) = rest.split_once('.') {
            (rest, parts.codeset) = (before, codeset.to_owned());
        }
        if let Some((before, territory)) = rest.split_once('_') {
            (rest, parts.territory) = (before, territory.to_owned());
        }
        parts.language = rest.to_owned();
        parts
    }

    fn joined(&self) -> String {
        let with = |sign: char, part: &str| {
            if part.is_empty() { String::new() } else { format!("{sign}{part}") }
        };
        format!(
            "{}{}{}{}{}",
            self.language,
            with('_', &self.territory),
            with('.', &self.codeset),
            with('@', &self.modifier),
            with(' ', &self.charmap)
        )
    }

    /// As `locale -a` writes it.
    fn normal(mut self) -> String {
        self.codeset = self.codeset.to_lowercase().replace('-', "");
        self.charmap.clear();
        self.joined()
    }
}

fn checked(locale: &str) -> Result<()> {
    if locale.is_empty() || locale.starts_with('-') || locale.contains(['\n', '\0', '"', '$', '`'])
    {
        return Err(Error::invalid(format!("'{locale}' cannot be the name of a locale")));
    }
    Ok(())
}

fn booted_with_systemd(cx: &Cx) -> bool {
    cx.host.is_dir(Path::new("/run/systemd/system")).unwrap_or(false)
}

/// Return the locales there are.
///
/// ```console
/// $ salt web1 locale.list_avail
/// ```
#[function]
pub fn list_avail(cx: &Cx) -> Result<Vec<String>> {
    let output = cx.host.run(&Command::line(["locale", "-a"]).query())?;
    Ok(output.stdout_text().trim_end().split('\n').map(str::to_owned).collect())
}

/// The variables of `localectl status`.
fn localectl(cx: &Cx) -> Result<Vec<(String, String)>> {
    if cx.host.which("localectl").is_none() {
        return Err(Error::failed("Unable to find \"localectl\""));
    }
    let output = cx.host.run(&Command::line(["localectl", "status"]).query())?;
    if output.stderr_text().contains("Failed to connect to bus: No such file or directory") {
        return Err(Error::failed("Command \"localectl\" is in a degraded state."));
    }
    let text = output.stdout_text();
    let mut found = Vec::new();
    let mut ours = false;
    for line in text.lines() {
        let data = match line.split_once(": ") {
            Some((key, data)) => {
                ours = key.trim() == "System Locale";
                data
            }
            None => line,
        };
        if let Some((name, value)) = data.trim().split_once('=').filter(|_| ours) {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    if text.trim().is_empty() {
        return Err(Error::failed("Unable to parse result of \"localectl\""));
    }
    Ok(found)
}

/// The file and the word of a distribution without systemd.
fn file_of(cx: &Cx) -> Result<(&'static str, &'static str)> {
    match cx.grain_str("os_family").as_str() {
        "Suse" => Ok(("/etc/sysconfig/language", "RC_LANG")),
        "RedHat" => Ok(("/etc/sysconfig/i18n", "LANG")),
        "Debian" => Ok(("/etc/default/locale", "LANG")),
        _ => {
            let name = cx.grain_str("oscodename");
            Err(Error::failed(format!("Error: \"{name}\" is unsupported!")))
        }
    }
}

/// Return the machine's locale.
///
/// ```console
/// $ salt web1 locale.get_locale
/// ```
#[function]
pub fn get_locale(cx: &Cx) -> Result<String> {
    if booted_with_systemd(cx) {
        let found = localectl(cx)?;
        let lang = found.into_iter().find(|(name, _)| name == "LANG").map(|(_, value)| value);
        return Ok(lang.unwrap_or_default());
    }
    let (path, word) = file_of(cx)?;
    let text = cx.host.read_text_if_there(Path::new(path))?.unwrap_or_default();
    let start = format!("{word}=");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    Ok(line.map(|value| value.replace('"', "")).unwrap_or_default())
}

/// Replaces the line of a word, or appends one.
fn set_line(cx: &Cx, path: &str, word: &str, line: &str) -> Result<()> {
    let path = Path::new(path);
    let text = read_to_edit_if_there(cx, path)?.unwrap_or_default();
    let start = format!("{word}=");
    let mut placed = false;
    let mut new = String::new();
    for own in text.split_inclusive('\n') {
        if own.starts_with(&start) {
            new += line;
            placed = true;
        } else {
            new += own;
        }
    }
    if !placed {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += line;
    }
    Ok(cx.host.write(path, new.as_bytes(), &Write::default())?)
}

/// Set the machine's locale.
///
/// ```console
/// $ salt web1 locale.set_locale de_AT.UTF-8
/// ```
#[function]
pub fn set_locale(
    cx: &Cx,
    /// The locale.
    locale: String,
) -> Result<bool> {
    checked(&locale)?;
    let family = cx.grain_str("os_family");
    let release = cx.grain("osmajorrelease").and_then(|release| release.to_int()).unwrap_or(0);
    let by_file = family == "Debian" && release >= 13;
    if booted_with_systemd(cx) && !by_file {
        let mut found = localectl(cx)?;
        match found.iter_mut().find(|(name, _)| name == "LANG") {
            Some((_, value)) => value.clone_from(&locale),
            None => found.push(("LANG".into(), locale.clone())),
        }
        let words = found.iter().map(|(name, value)| format!("{name}={value}"));
        let line = ["localectl".to_owned(), "set-locale".to_owned()].into_iter().chain(words);
        if !cx.host.run(&Command::line(line))?.ok() {
            set_line(cx, "/etc/locale.conf", "LANG", &format!("LANG={locale}\n"))?;
        }
        return Ok(true);
    }
    if family == "Debian" {
        if cx.host.which("update-locale").is_none() {
            return Err(Error::failed("Cannot set locale: \"update-locale\" was not found."));
        }
        cx.host.run(&Command::line(["update-locale"]))?;
    }
    let (path, word) = file_of(cx).map_err(|_| Error::failed("Error: Unsupported platform!"))?;
    set_line(cx, path, word, &format!("{word}=\"{locale}\"\n"))?;
    Ok(true)
}

/// Tell whether a locale is there.
///
/// ```console
/// $ salt web1 locale.avail de_AT.UTF-8
/// ```
#[function]
pub fn avail(
    cx: &Cx,
    /// The locale.
    locale: String,
) -> Result<bool> {
    let wanted = Parts::read(&locale).normal();
    Ok(list_avail(cx)?.iter().any(|own| Parts::read(own.trim()).normal() == wanted))
}

/// How a distribution makes locales.
struct Distribution {
    /// The grain and its value by which it is known; empty ones fit everything.
    grain: (&'static str, &'static str),
    catalogue: Catalogue,
    /// Locales are written with their character map.
    charmap: bool,
    /// What `locale-gen` is called with before the name.
    options: &'static [&'static str],
    /// `locale-gen` wants the name as `locale -a` writes it.
    normal: bool,
}

/// Where the locales stand that can be made.
enum Catalogue {
    /// A file with one in each line.
    Lines(&'static str),
    /// A folder with a file or folder for each, named without the code set.
    Names(&'static str),
}

const SUPPORTED: Catalogue = Catalogue::Lines("/usr/share/i18n/SUPPORTED");
const SOURCES: Catalogue = Catalogue::Names("/usr/share/i18n/locales");

/// The first that fits counts; the last fits all.
const DISTRIBUTIONS: [Distribution; 5] = [
    Distribution {
        grain: ("os", "Debian"),
        catalogue: SUPPORTED,
        charmap: true,
        options: &[],
        normal: false,
    },
    Distribution {
        grain: ("os", "Ubuntu"),
        catalogue: SOURCES,
        charmap: false,
        options: &[],
        normal: true,
    },
    Distribution {
        grain: ("os_family", "Gentoo"),
        catalogue: SUPPORTED,
        charmap: true,
        options: &["--generate"],
        normal: false,
    },
    Distribution {
        grain: ("os_family", "Suse"),
        catalogue: Catalogue::Names("/usr/share/locale"),
        charmap: true,
        options: &[],
        normal: false,
    },
    Distribution {
        grain: ("", ""),
        catalogue: SOURCES,
        charmap: true,
        options: &[],
        normal: false,
    },
];

impl Distribution {
    fn of(cx: &Cx) -> &'static Self {
        let fits = |own: &&Self| own.grain.0.is_empty() || cx.grain_str(own.grain.0) == own.grain.1;
        DISTRIBUTIONS.iter().find(fits).expect("the last one fits all")
    }

    /// The name as the distribution writes it.
    fn full(&self, locale: &str) -> String {
        let mut parts = Parts::read(locale);
        if !self.charmap {
            return locale.to_owned();
        }
        if parts.charmap.is_empty() {
            parts.charmap.clone_from(&parts.codeset);
        }
        parts.joined()
    }

    /// Tells whether a locale can be made here.
    fn offers(&self, cx: &Cx, full: &str, search: &str) -> Result<bool> {
        let (place, found) = match self.catalogue {
            Catalogue::Lines(place) => {
                let text = cx.host.read_text_if_there(Path::new(place))?.unwrap_or_default();
                (place, text.lines().any(|line| line == full))
            }
            Catalogue::Names(place) => match cx.host.read_dir(Path::new(place)) {
                Ok(names) => (place, names.iter().any(|name| name.to_string_lossy() == search)),
                Err(_) => {
                    return Err(Error::failed(format!("Locale \"{full}\" is not available.")));
                }
            },
        };
        if !found {
            tracing::error!("no locale '{full}' can be made: {place} knows none");
        }
        Ok(found)
    }
}

/// Takes the `#` off the first line that names a locale; adds one if there is none.
fn listed(text: &str, full: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.iter().any(|line| line.trim() == full) {
        return text.to_owned();
    }
    let own = format!("{full}\n");
    let hidden =
        |line: &&str| line.trim_start().strip_prefix('#').is_some_and(|rest| rest.trim() == full);
    match lines.iter().position(hidden) {
        Some(at) => lines[at] = &own,
        None => lines.push(&own),
    }
    lines.concat()
}

/// Generate a locale.
///
/// ```console
/// $ salt '*' locale.gen_locale 'en_IE.UTF-8 UTF-8'
/// ```
#[function]
pub fn gen_locale(
    cx: &Cx,
    /// The locale; on Debian with its character map after a space, or without.
    locale: String,
    /// `verbose`: return all that was said.
    kwargs: Rest,
) -> Result<Value> {
    checked(&locale)?;
    let parts = Parts::read(&locale);
    let search = format!("{}_{}", parts.language, parts.territory);
    let distribution = Distribution::of(cx);
    let full = distribution.full(&locale);
    if !distribution.offers(cx, &full, &search)? {
        return Ok(false.into());
    }
    let list = Path::new("/etc/locale.gen");
    if let Some(text) = read_to_edit_if_there(cx, list)? {
        cx.host.write(list, listed(&text, &full).as_bytes(), &Write::default())?;
    }
    let verbose = kwargs.kwargs.get("verbose").is_some_and(|flag| flag.truthy());
    let has = |program: &str| cx.host.which(program).is_some();
    let line: Vec<String> = if has("locale-gen") {
        let name = if distribution.normal { parts.normal() } else { full };
        ["locale-gen"]
            .iter()
            .chain(distribution.options)
            .copied()
            .chain([&*name])
            .map(str::to_owned)
            .collect()
    } else if has("localedef") {
        let name = format!("{search}.{}", parts.codeset);
        let said = if verbose { "--verbose" } else { "--quiet" };
        let words = ["localedef", "--force", "-i", &search, "-f", &parts.codeset, &name, said];
        words.map(str::to_owned).into()
    } else {
        return Err(Error::failed(
            "Command \"locale-gen\" or \"localedef\" was not found on this system.",
        ));
    };
    let output = cx.host.run(&Command::line(line))?;
    if !output.ok() {
        tracing::error!("{}", output.stderr_text());
    }
    if verbose {
        return Ok(halite_value::dict! {
            "pid" => output.pid, "retcode" => output.code,
            "stdout" => output.stdout_text().trim_end(), "stderr" => output.stderr_text().trim_end(),
        });
    }
    Ok(output.ok().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_uncommented_or_added() {
        let text = "# a list\n# de_DE.UTF-8 UTF-8\n#de_DE.UTF-8 UTF-8\n";
        let full = "de_DE.UTF-8 UTF-8";
        let expected = "# a list\nde_DE.UTF-8 UTF-8\n#de_DE.UTF-8 UTF-8\n";
        assert_eq!(listed(text, full), expected);
        assert_eq!(listed(expected, full), expected);
        assert_eq!(listed("x\n", full), "x\nde_DE.UTF-8 UTF-8\n");
    }

    #[test]
    fn locales_are_taken_apart() {
        let parts = Parts::read("de_DE.UTF-8@euro UTF-8");
        assert_eq!(parts.joined(), "de_DE.UTF-8@euro UTF-8");
        assert_eq!(parts.normal(), "de_DE.utf8@euro");
        assert_eq!(Parts::read("C").normal(), "C");
    }
}
