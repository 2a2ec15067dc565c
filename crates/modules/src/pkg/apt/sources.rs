//! apt's source lists: one-line entries (`deb [signed-by=…] uri suite comps`) and deb822 sections.
//!
//! Lines and sections we do not touch are written back as they were. A commented line that reads
//! as an entry is a disabled entry, as Salt takes it; any other comment is kept and means nothing.

use std::path::Path;

use halite_spec::{Cx, Error, Result, host::Write};

pub(crate) const MAIN: &str = "/etc/apt/sources.list";
const PARTS: &str = "/etc/apt/sources.list.d";

/// One option in the brackets of a line: name, as written, value.
pub(crate) type LineOption = (String, String);

/// A one-line entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) file: String,
    /// As it stands in the file, or as it was given.
    pub(crate) text: String,
    pub(crate) invalid: bool,
    pub(crate) disabled: bool,
    pub(crate) kind: String,
    pub(crate) architectures: Vec<String>,
    pub(crate) signedby: String,
    pub(crate) trusted: Option<bool>,
    /// Options beside these three, as written.
    pub(crate) others: Vec<LineOption>,
    pub(crate) uri: String,
    pub(crate) dist: String,
    pub(crate) comps: Vec<String>,
    pub(crate) comment: String,
}

/// Reads `yes`, `on`, `1` …
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "no" | "false" | "without" | "off" | "disable" | "0" => Some(false),
        "yes" | "true" | "with" | "on" | "enable" | "1" => Some(true),
        _ => None,
    }
}

impl Line {
    /// Reads a line; one that is no entry is `invalid`. An entry without a suite is an error.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Self> {
        let mut line = Self { file: file.to_owned(), text: text.to_owned(), ..Self::default() };
        let mut rest = text.trim();
        line.invalid = true;
        if rest.is_empty() {
            return Ok(line);
        }
        if let Some(commented) = rest.strip_prefix('#') {
            line.disabled = true;
            rest = commented;
        }
        if let Some(at) = rest.find('#').filter(|at| *at > 0) {
            line.comment = rest[at + 1..].to_owned();
            rest = &rest[..at];
        }
        let mut words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
        let kinds = ["deb", "deb-src", "rpm", "rpm-src"];
        if words.len() < 3 || !words.first().is_some_and(|word| kinds.contains(&word.as_str())) {
            return Ok(line);
        }
        if words.get(1).is_some_and(|word| word.starts_with('[')) {
            let Some(end) = words.iter().skip(1).position(|word| word.ends_with(']')) else {
                return Ok(line);
            };
            let options: Vec<String> = words.drain(1..=end + 1).collect();
            let options = options.join(" ");
            line.read_options(options.trim_matches(['[', ']']));
        }
        line.invalid = false;
        if words.len() < 3 {
            return Err(Error::invalid(format!(
                "Invalid repository definition: {}",
                words.join(" ")
            )));
        }
        let mut words = words.into_iter();
        line.kind = words.next().unwrap_or_default();
        line.uri = words.next().unwrap_or_default();
        line.dist = words.next().unwrap_or_default();
        line.comps = words.collect();
        Ok(line)
    }

    fn read_options(&mut self, options: &str) {
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                _ if name.starts_with("arch") => {
                    self.architectures.extend(value.split(',').map(str::to_owned));
                }
                "signed-by" => value.clone_into(&mut self.signedby),
                "trusted" => self.trusted = truth(value),
                _ => self.others.push((name.to_owned(), option.to_owned())),
            }
        }
    }

    /// Takes the options we do not know from another entry.
    pub(crate) fn others_from(&mut self, other: &Self) {
        self.others.clone_from(&other.others);
    }

    /// The entry as a line, without its end.
    pub(crate) fn written(&self) -> String {
        if self.invalid {
            return self.text.trim_end_matches('\n').to_owned();
        }
        let mut options = Vec::new();
        // In the order they were given; what is new comes last.
        let mut order: Vec<&str> = Vec::new();
        if let (Some(start), Some(end)) = (self.text.find('['), self.text.find(']'))
            && start < end
        {
            order.extend(
                self.text[start + 1..end]
                    .split_whitespace()
                    .filter_map(|word| word.split('=').next()),
            );
        }
        for name in ["arch", "signed-by", "trusted"] {
            if !order.contains(&name) {
                order.push(name);
            }
        }
        for name in order {
            match name {
                _ if name.starts_with("arch") && !self.architectures.is_empty() => {
                    options.push(format!("arch={}", self.architectures.join(",")));
                }
                "signed-by" if !self.signedby.is_empty() => {
                    options.push(format!("signed-by={}", self.signedby));
                }
                "trusted" if self.trusted == Some(true) => options.push("trusted=yes".into()),
                _ => options.extend(
                    self.others.iter().filter(|(own, _)| own == name).map(|(_, full)| full.clone()),
                ),
            }
        }
        let mut words = Vec::new();
        if self.disabled {
            words.push("#".to_owned());
        }
        words.push(self.kind.clone());
        if !options.is_empty() {
            words.push(format!("[{}]", options.join(" ")));
        }
        words.extend([self.uri.clone(), self.dist.clone(), self.comps.join(" ")]);
        if !self.comment.is_empty() {
            words.push(format!("#{}", self.comment));
        }
        words.join(" ").trim().to_owned()
    }
}

/// A deb822 section: fields in their order, with the comments around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) file: String,
    pub(crate) header: Vec<String>,
    pub(crate) footer: Vec<String>,
    pub(crate) fields: Vec<(String, String)>,
}

impl Section {
    fn parse(text: &str, file: &str) -> Self {
        let mut section = Self { file: file.to_owned(), ..Self::default() };
        for line in text.lines() {
            if line.starts_with('#') {
                let comments = if section.fields.is_empty() {
                    &mut section.header
                } else {
                    &mut section.footer
                };
                comments.push(line.to_owned());
            } else if !line.starts_with([' ', '\t'])
                && let Some((name, value)) = line.split_once(':')
            {
                section.fields.push((name.to_owned(), value.trim().to_owned()));
            } else if let Some((_, value)) = section.fields.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        }
        section
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        self.get(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        match self.fields.iter_mut().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
            Some((_, own)) => *own = value.into(),
            None => self.fields.push((name.to_owned(), value.into())),
        }
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.fields.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
    }

    pub(crate) fn disabled(&self) -> bool {
        self.get("Enabled").and_then(truth) == Some(false)
    }

    pub(crate) fn written(&self) -> String {
        let fields = self.fields.iter().filter(|(_, value)| !value.is_empty());
        let fields = fields.map(|(name, value)| format!("{name}: {value}"));
        let lines: Vec<String> =
            self.header.iter().cloned().chain(fields).chain(self.footer.iter().cloned()).collect();
        lines.join("\n").trim().to_owned()
    }
}

/// An entry of either form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Line(Line),
    Section(Section),
}

impl Source {
    pub(crate) fn file(&self) -> &str {
        match self {
            Self::Line(line) => &line.file,
            Self::Section(section) => &section.file,
        }
    }

    pub(crate) fn invalid(&self) -> bool {
        match self {
            Self::Line(line) => line.invalid,
            Self::Section(section) => section.fields.is_empty(),
        }
    }

    pub(crate) fn types(&self) -> Vec<String> {
        match self {
            Self::Line(line) => vec![line.kind.clone()],
            Self::Section(section) => section.words("Types"),
        }
    }

    pub(crate) fn uris(&self) -> Vec<String> {
        match self {
            Self::Line(line) => vec![line.uri.clone()],
            Self::Section(section) => section.words("URIs"),
        }
    }

    pub(crate) fn suites(&self) -> Vec<String> {
        match self {
            Self::Line(line) if line.dist.is_empty() => Vec::new(),
            Self::Line(line) => vec![line.dist.clone()],
            Self::Section(section) => section.words("Suites"),
        }
    }

    pub(crate) fn comps(&self) -> Vec<String> {
        match self {
            Self::Line(line) => line.comps.clone(),
            Self::Section(section) => section.words("Components"),
        }
    }

    pub(crate) fn architectures(&self) -> Vec<String> {
        match self {
            Self::Line(line) => line.architectures.clone(),
            Self::Section(section) => section.words("Architectures"),
        }
    }

    pub(crate) fn signedby(&self) -> Option<String> {
        match self {
            Self::Line(line) => Some(line.signedby.clone()),
            Self::Section(section) => section.get("Signed-By").map(str::to_owned),
        }
    }

    pub(crate) fn disabled(&self) -> bool {
        match self {
            Self::Line(line) => line.disabled,
            Self::Section(section) => section.disabled(),
        }
    }

    pub(crate) fn set_suites(&mut self, suites: &[String]) {
        match self {
            Self::Line(line) => line.dist = suites.first().cloned().unwrap_or_default(),
            Self::Section(section) => section.set("Suites", suites.join(" ")),
        }
    }

    pub(crate) fn set_comps(&mut self, comps: &[String]) {
        match self {
            Self::Line(line) => line.comps = comps.to_vec(),
            Self::Section(section) => section.set("Components", comps.join(" ")),
        }
    }

    fn written(&self) -> String {
        match self {
            Self::Line(line) => line.written(),
            Self::Section(section) => section.written(),
        }
    }
}

/// Reads every source list of the machine. One that cannot be read is an error: a source we do not
/// see would be added a second time.
pub(crate) fn load(cx: &Cx) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut read = |path: &str| -> Result<()> {
        if let Some(text) = cx.host.read_text_if_there(Path::new(path))? {
            sources.extend(parse(&text, path));
        }
        Ok(())
    };
    read(MAIN)?;
    let names = match cx.host.read_dir(Path::new(PARTS)) {
        Ok(names) => names,
        Err(error) if error.is_missing() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for name in names {
        let name = name.to_string_lossy();
        if name.ends_with(".list") || name.ends_with(".sources") {
            read(&format!("{PARTS}/{name}"))?;
        }
    }
    Ok(sources)
}

fn parse(text: &str, path: &str) -> Vec<Source> {
    if !path.ends_with(".sources") {
        let line = |text: &str| match Line::parse(text, path) {
            Ok(line) => Some(Source::Line(line)),
            Err(error) => {
                tracing::error!("Could not parse source file '{path}': {error}");
                None
            }
        };
        return text.lines().filter_map(line).collect();
    }
    let mut sections = Vec::new();
    let mut section = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            section.push_str(line);
            section.push('\n');
        } else if !section.is_empty() {
            sections.push(Source::Section(Section::parse(&section, path)));
            section.clear();
        }
    }
    sections
}

/// Writes every file that differs from what the sources say.
pub(crate) fn save(cx: &Cx, sources: &[Source]) -> Result<()> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for source in sources {
        let text = format!("{}\n", source.written());
        match files.iter_mut().find(|(file, _)| *file == source.file()) {
            Some((_, content)) => {
                if matches!(source, Source::Section(_)) {
                    content.push('\n');
                }
                content.push_str(&text);
            }
            None => files.push((source.file(), text)),
        }
    }
    for (file, content) in files {
        let path = Path::new(file);
        if cx.host.read_text_if_there(path)?.as_deref() != Some(&content) {
            cx.host.write(path, content.as_bytes(), &Write::default())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, kind: &str, uri: &str, dist: &str, comps: &[&str]) -> Line {
        let line = Line::parse(text, MAIN).unwrap();
        assert!(!line.invalid, "{text}");
        assert_eq!((&*line.kind, &*line.uri, &*line.dist), (kind, uri, dist), "{text}");
        assert_eq!(line.comps, comps, "{text}");
        line
    }

    #[test]
    fn lines() {
        check("deb http://a b main contrib", "deb", "http://a", "b", &["main", "contrib"]);
        let line = check(
            "deb [arch=amd64,i386 signed-by=/usr/share/keyrings/x.gpg lang=en] http://a b main # c",
            "deb",
            "http://a",
            "b",
            &["main"],
        );
        assert_eq!(line.architectures, ["amd64", "i386"]);
        assert_eq!(line.signedby, "/usr/share/keyrings/x.gpg");
        assert_eq!(line.comment, " c");
        assert_eq!(
            line.written(),
            "deb [arch=amd64,i386 signed-by=/usr/share/keyrings/x.gpg lang=en] http://a b main # c"
        );
        let line = check("# deb-src http://a b/", "deb-src", "http://a", "b/", &[]);
        assert!(line.disabled);
        for other in ["", "# a comment", "deb [x http://a b c", "deb http://a"] {
            assert!(Line::parse(other, MAIN).unwrap().invalid, "{other}");
        }
        let error = Line::parse("deb [trusted=yes] http://a", MAIN).unwrap_err().to_string();
        assert_eq!(error, "Invalid repository definition: deb http://a");
    }

    #[test]
    fn sections() {
        let text = "# made by hand\nTypes: deb deb-src\nURIs: http://a\nSuites: b c\n\
                    Components: main\nSigned-By:\n -----BEGIN\n .\n\n\nTypes: deb\nURIs: http://d\n\
                    Suites: e\nEnabled: no\n";
        let found = parse(text, "/etc/apt/sources.list.d/x.sources");
        assert_eq!(found.len(), 2);
        let first = found.first().unwrap();
        assert_eq!(first.types(), ["deb", "deb-src"]);
        assert_eq!(first.suites(), ["b", "c"]);
        assert!(!first.disabled() && found.get(1).unwrap().disabled());
        assert!(first.written().starts_with("# made by hand\nTypes: deb deb-src\n"));
    }
}
