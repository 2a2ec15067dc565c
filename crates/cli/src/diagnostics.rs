//! How problems are shown: place, excerpt, caret, help; or one JSON object per line.
//!
//! Everything that goes wrong ends here as a [`Report`]. The reports are data: only the programs
//! print them.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use halite_config::{Warning, WarningKind};
use halite_value::{Place, Value, dict, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One problem.
#[derive(Clone, Debug)]
pub struct Report {
    pub severity: Severity,
    /// A stable name of the kind of problem, such as `S0312`.
    pub code: Option<&'static str>,
    pub message: String,
    pub place: Option<Place>,
    /// The text of the file the place is in, if at hand.
    pub source: Option<String>,
    /// The word at the place, if more than one letter is to be underlined.
    pub word: Option<String>,
    /// What stands beside the caret.
    pub label: Option<String>,
    pub notes: Vec<String>,
    pub help: Vec<String>,
    /// The exit code of a program that ends because of this.
    pub exit: u8,
}

/// In which form reports are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Plain,
    Colored,
    Json,
}

impl Report {
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code: None,
            message: message.into(),
            place: None,
            source: None,
            word: None,
            label: None,
            notes: Vec::new(),
            help: Vec::new(),
            exit: 1,
        }
    }

    #[must_use]
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, exit: 0, ..Self::error(message) }
    }

    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    #[must_use]
    pub fn exit(mut self, code: u8) -> Self {
        self.exit = code;
        self
    }

    /// Takes the text of the file from `read`, to show an excerpt.
    #[must_use]
    pub fn with_source(mut self, read: impl Fn(&str) -> Option<String>) -> Self {
        self.source = self.place.as_ref().and_then(|place| read(&place.file));
        self
    }

    /// Returns the report as text, with its newline.
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        let renderer = match format {
            Format::Json => return self.to_json() + "\n",
            Format::Plain => Renderer::plain(),
            Format::Colored => Renderer::styled(),
        };
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let mut title = level.primary_title(self.message.as_str());
        if let Some(code) = self.code {
            title = title.id(code);
        }
        let mut group = Group::with_title(title);
        if let Some(place) = &self.place {
            let file = place.file.to_string();
            let (line, column) = (place.line as usize, place.column as usize);
            group = match self.excerpt(place) {
                Some((text, span)) => {
                    let label = self.label.clone();
                    let annotation = AnnotationKind::Primary.span(span).label(label);
                    let snippet = Snippet::source(text).line_start(line).path(file);
                    group.element(snippet.annotation(annotation))
                }
                None => {
                    group.element(Origin::path(file).line(line.max(1)).char_column(column.max(1)))
                }
            };
        }
        group = group.elements(self.notes.iter().map(|note| Level::NOTE.message(note.as_str())));
        group = group.elements(self.help.iter().map(|help| Level::HELP.message(help.as_str())));
        renderer.render(&[group]) + "\n"
    }

    /// Returns the line of the place, and the bytes in it to underline.
    fn excerpt(&self, place: &Place) -> Option<(String, std::ops::Range<usize>)> {
        let line = self.source.as_ref()?.lines().nth((place.line as usize).checked_sub(1)?)?;
        let column = (place.column as usize).saturating_sub(1);
        let start = match place.column {
            0 => line.len() - line.trim_start().len(),
            _ => line.char_indices().nth(column).map_or(line.len(), |(at, _)| at),
        };
        let rest = &line[start..];
        let length = match &self.word {
            Some(word) if rest.starts_with(word.as_str()) => word.len(),
            _ if place.column == 0 => rest.trim_end().len(),
            _ => rest.chars().next().map_or(0, char::len_utf8),
        };
        Some((line.into(), start..start + length))
    }

    fn to_json(&self) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let report = dict! { "severity" => severity, "message" => self.message.as_str() };
        let Value::Dict(fields) = &report else { return String::new() };
        if let Some(code) = self.code {
            fields.insert("code", code);
        }
        if let Some(place) = &self.place {
            fields.insert("file", &*place.file);
            fields.insert("line", place.line);
            fields.insert("column", place.column);
        }
        if let Some(label) = &self.label {
            fields.insert("label", label);
        }
        fields.insert("notes", Value::list(self.notes.iter()));
        fields.insert("help", Value::list(self.help.iter()));
        json::to_string(&report).unwrap_or_default()
    }
}

impl From<&halite_config::Error> for Report {
    fn from(error: &halite_config::Error) -> Self {
        use halite_config::Error;
        match error {
            Error::Syntax { file, line, column, message } => {
                Self::error(format!("Error parsing configuration file: {file} - {message}"))
                    .at(Some(Place::new(file.as_str(), *line, *column)))
            }
            Error::NotAMap { file, found } => {
                let mut report = Self::error(error.to_string())
                    .at(Some(Place::new(file.as_str(), 1, 0)))
                    .help("options are written as `name: value`, one per line");
                report.label = Some(format!("this is a {found}"));
                report
            }
            Error::Read { .. } | Error::Invalid { .. } => Self::error(error.to_string()),
        }
    }
}

impl From<&Warning> for Report {
    fn from(warning: &Warning) -> Self {
        let mut report = Self::warning(warning.message.clone()).at(warning.place.clone());
        match &warning.kind {
            WarningKind::Unknown { option, suggestion } => {
                report.code = Some("S0001");
                report.message = format!("unknown option `{option}`");
                report.label = Some(format!("help: did you mean `{suggestion}`?"));
                report.word = Some(option.clone());
            }
            WarningKind::Foreign { option } => {
                report.code = Some("S0001");
                report.word = Some(option.clone());
            }
            WarningKind::WrongType { option } => {
                report.code = Some("S0002");
                report.word = Some(option.clone());
            }
            WarningKind::Skipped => {
                report.severity = Severity::Error;
                report.code = Some("S0003");
            }
            WarningKind::Missing | WarningKind::NoMatch | WarningKind::Adjusted => {}
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::warning("unknown argument `contnts` for state `file.managed`")
            .at(Some(Place::new("web/init.sls", 4, 7)))
            .with_source(|_| {
                Some("a:\n  file.managed:\n    - name: /x\n    - contnts: hello\n".into())
            });
        report.code = Some("S0312");
        report.word = Some("contnts".into());
        report.label = Some("help: did you mean `contents`?".into());
        report.notes.push("the file would be created empty; Salt accepts this silently".into());
        report
    }

    #[test]
    fn the_standard_to_meet() {
        let expected = "\
warning[S0312]: unknown argument `contnts` for state `file.managed`
 --> web/init.sls:4:7
  |
4 |     - contnts: hello
  |       ^^^^^^^ help: did you mean `contents`?
  |
  = note: the file would be created empty; Salt accepts this silently
";
        assert_eq!(report().render(Format::Plain), expected);
    }

    #[test]
    fn without_the_file() {
        let mut report = report();
        report.source = None;
        report.notes.clear();
        let expected = "\
warning[S0312]: unknown argument `contnts` for state `file.managed`
--> web/init.sls:4:7
";
        assert_eq!(report.render(Format::Plain), expected);
    }

    #[test]
    fn as_json() {
        let text = report().render(Format::Json);
        let value = json::from_str(&text).expect("JSON");
        assert_eq!(value.get("code"), Some("S0312".into()));
        assert_eq!(value.get("line"), Some(4.into()));
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_place_beyond_the_text_does_no_harm() {
        for (line, column) in [(0, 0), (4, 99), (99, 1), (1, 0)] {
            let mut report = report();
            report.place = Some(Place::new("x", line, column));
            assert!(report.render(Format::Plain).contains("unknown argument"));
        }
    }
}
