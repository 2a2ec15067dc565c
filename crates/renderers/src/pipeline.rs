//! The pipe of renderers that turns a file into data: `#!jinja|yaml`.
//!
//! A file's first line may name its pipe; otherwise the configured default counts. [`Renderers`]
//! knows the renderers by name and runs a text through a pipe; a renderer takes [`Data`] (text, or
//! a value) and gives data. Text carries along which line of the file each of its lines came from,
//! so that whoever finds a mistake can name the author's line, not the rendered one.
//!
//! This crate brings `yaml`, `yamlex`, `json`, `toml`, `msgpack` and `text`. Others (`jinja` with the functions of a
//! minion, `py` through the Python host, `gpg`) are registered by the programs that have what they need.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use halite_value::{Dict, Place, Value, suggest};

use crate::{
    json::Json,
    msgpack::MsgPack,
    text::Plain,
    toml::Toml,
    yaml::{Yaml, YamlEx},
};

/// What goes through a pipe.
#[derive(Clone, Debug)]
pub enum Data {
    Text(Text),
    Value(Value),
}

impl Data {
    /// Returns the value; text counts as a string.
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::str(text.as_str()),
            Self::Value(value) => value,
        }
    }
}

/// Tells which line of the input a line of the output came from.
pub trait Lines: Send + Sync + fmt::Debug {
    /// Returns the file (`None`: the input itself) and the line, both counted from 1.
    fn source_of(&self, line: u32) -> Option<(Option<Arc<str>>, u32)>;
}

/// Text, and where it came from.
#[derive(Clone, Debug)]
pub struct Text {
    body: Arc<Body>,
    origin: Arc<Body>,
    file: Arc<str>,
    /// One per renderer that moved lines, the first one first.
    steps: Vec<Arc<dyn Lines>>,
}

/// A text whose lines are found without counting: YAML asks for the place of every key.
#[derive(Debug, Default)]
struct Body {
    text: String,
    /// Where each line begins.
    starts: OnceLock<Vec<usize>>,
}

impl Body {
    fn new(text: String) -> Arc<Self> {
        Arc::new(Self { text, starts: OnceLock::new() })
    }

    /// Returns a line, counted from 1, without its end.
    fn line(&self, line: u32) -> Option<&str> {
        let starts = self.starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
        });
        let rest = &self.text[*starts.get(line.checked_sub(1)? as usize)?..];
        rest.lines().next()
    }
}

impl Text {
    /// Begins with the contents of a file, by the name that messages show.
    pub fn new(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        let body = Body::new(text.into());
        Self { origin: body.clone(), body, file: file.into(), steps: Vec::new() }
    }

    /// Returns what a renderer made of this text, with its line map if lines moved.
    pub fn rendered(&self, text: String, lines: Option<Arc<dyn Lines>>) -> Self {
        let mut new = self.clone();
        new.body = Body::new(text);
        new.steps.extend(lines);
        new
    }

    pub fn as_str(&self) -> &str {
        &self.body.text
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// Returns where the author finds a position of this text, both counted from 1.
    ///
    /// The column is kept only where the author's line reads like the rendered one.
    pub fn place(&self, line: u32, column: u32) -> Place {
        let mut at = line;
        for step in self.steps.iter().rev() {
            match step.source_of(at) {
                Some((Some(file), line)) => return Place { file, line, column: 0 },
                Some((None, line)) => at = line,
                None => return Place { file: self.file.clone(), line: 0, column: 0 },
            }
        }
        let same = self.steps.is_empty() || self.origin.line(at) == self.body.line(line);
        let column = if same { column } else { 0 };
        Place { file: self.file.clone(), line: at, column }
    }

    /// Returns the author's line at a place, for an excerpt; `None` if it is in another file.
    pub fn source_line(&self, place: &Place) -> Option<&str> {
        (place.file == self.file).then(|| self.origin.line(place.line)).flatten()
    }
}

/// What a renderer knows about the file.
#[derive(Clone, Copy, Debug)]
pub struct RenderCx<'a> {
    pub saltenv: &'a str,
    /// The name of the SLS (`web.nginx`), empty when it is none.
    pub sls: &'a str,
    /// Where the file is on this machine.
    pub path: Option<&'a str>,
    /// Variables that the caller sets for templates.
    pub context: &'a Dict,
}

/// Makes text or data from text or data.
pub trait Renderer: Send + Sync {
    fn name(&self) -> &str;

    /// Renders; `args` is what stood after the name in the pipe.
    fn render(&self, input: Data, args: &str, cx: &RenderCx<'_>) -> Result<Data, Error>;
}

/// Why a file could not be rendered.
///
/// `Display` is the message as genuine Salt shows it; the rest is for a better one.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    message: String,
    class: String,
    place: Option<Place>,
    source_line: Option<String>,
    hint: Option<String>,
}

/// The class whose message genuine Salt shows by itself; other exceptions are shown as accidents.
const RENDER_ERROR: &str = "SaltRenderError";

impl Error {
    /// A mistake that genuine Salt reports as a `SaltRenderError`.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of_class(RENDER_ERROR, message)
    }

    /// A mistake for which genuine Salt lets another exception through.
    pub fn of_class(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            message: message.into(),
            class: class.into(),
            place: None,
            source_line: None,
            hint: None,
        }))
    }

    /// Adds where the author has to look.
    #[must_use]
    pub fn at(mut self, place: Place, text: &Text) -> Self {
        self.0.source_line = text.source_line(&place).map(str::to_owned);
        self.0.place = Some(place);
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Returns the name of the exception class.
    pub fn class(&self) -> &str {
        &self.0.class
    }

    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// Returns the author's line at the place.
    pub fn source_line(&self) -> Option<&str> {
        self.0.source_line.as_deref()
    }

    /// Returns what probably helps.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the class if this is an exception that genuine Salt lets through, not a mistake that
    /// it tells as one of a renderer.
    pub fn accident(&self) -> Option<&str> {
        Some(self.class()).filter(|class| *class != RENDER_ERROR)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

/// One step of a pipe.
#[derive(Clone)]
pub struct Step {
    pub renderer: Arc<dyn Renderer>,
    pub args: String,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.renderer.name(), self.args)
    }
}

/// The steps for a file, and what the log should say about them.
#[derive(Clone, Debug, Default)]
pub struct Pipe {
    pub steps: Vec<Step>,
    pub warnings: Vec<String>,
}

/// What came out of a pipe.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub data: Data,
    /// For the log.
    pub warnings: Vec<String>,
    /// For the log too, and worse: a renderer is not available, so that the file counts as empty.
    pub errors: Vec<String>,
}

impl Rendered {
    fn new(data: Data, warnings: Vec<String>) -> Self {
        Self { data, warnings, errors: Vec::new() }
    }
}

/// The renderers there are, and which of them may be used.
#[derive(Clone)]
pub struct Renderers {
    known: Vec<Arc<dyn Renderer>>,
    whitelist: Vec<String>,
    blacklist: Vec<String>,
}

impl Default for Renderers {
    fn default() -> Self {
        let known: Vec<Arc<dyn Renderer>> = vec![
            Arc::new(Yaml),
            Arc::new(YamlEx),
            Arc::new(Json),
            Arc::new(Toml),
            Arc::new(MsgPack),
            Arc::new(Plain),
        ];
        Self { known, whitelist: Vec::new(), blacklist: Vec::new() }
    }
}

impl fmt::Debug for Renderers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known.iter().map(|known| known.name())).finish()
    }
}

/// Names for whole pipes from the time before pipes.
const OLD_NAMES: [(&str, &str); 6] = [
    ("yaml_jinja", "jinja|yaml"),
    ("yaml_mako", "mako|yaml"),
    ("yaml_wempy", "wempy|yaml"),
    ("json_jinja", "jinja|json"),
    ("json_mako", "mako|json"),
    ("json_wempy", "wempy|json"),
];

impl Renderers {
    /// Returns those of this crate: `yaml`, `yamlex`, `json`, `toml`, `msgpack`, `text`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a renderer; one of the same name is replaced.
    pub fn register(&mut self, renderer: Arc<dyn Renderer>) {
        self.known.retain(|known| known.name() != renderer.name());
        self.known.push(renderer);
    }

    /// Sets the options `renderer_whitelist` and `renderer_blacklist`.
    pub fn allow(&mut self, whitelist: Vec<String>, blacklist: Vec<String>) {
        self.whitelist = whitelist;
        self.blacklist = blacklist;
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.known.iter().map(|known| known.name()).collect();
        names.sort_unstable();
        names
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Renderer>> {
        self.known.iter().find(|known| known.name() == name)
    }

    /// Reads the pipe for a text: its first line, if that names one, else the default.
    pub fn pipe_for(&self, text: &str, default: &str) -> Result<Pipe, Error> {
        self.pipe(shebang(text).unwrap_or(default))
    }

    /// Reads a pipe: `jinja|yaml`, `jinja -s | yaml`.
    pub fn pipe(&self, pipe: &str) -> Result<Pipe, Error> {
        let old = OLD_NAMES.iter().find(|(name, _)| *name == pipe);
        let mut result = Pipe::default();
        for part in old.map_or(pipe, |(_, pipe)| pipe).split('|') {
            let part = part.trim();
            let (name, args) = part.split_once(' ').unwrap_or((part, ""));
            let is_in = |list: &[String]| list.iter().any(|own| own == name);
            if !self.whitelist.is_empty() && !is_in(&self.whitelist) || is_in(&self.blacklist) {
                // Skipped, as in Salt, and the text goes on to the next.
                result.warnings.push(format!(
                    "The renderer \"{name}\" is disallowed by configuration and will be skipped."
                ));
                continue;
            }
            match self.get(name) {
                Some(renderer) => result
                    .steps
                    .push(Step { renderer: renderer.clone(), args: args.trim().to_owned() }),
                None => return Err(self.unavailable(name, pipe)),
            }
        }
        Ok(result)
    }

    fn unavailable(&self, name: &str, pipe: &str) -> Error {
        let shown = if name == pipe { String::new() } else { format!(" (in \"{pipe}\")") };
        let names = self.names().join(", ");
        let error = Error::new(format!(
            "The renderer \"{name}\" is not available{shown}; available: {names}"
        ));
        match suggest::nearest(name, self.names()) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// Runs a text through its pipe. What is empty renders to an empty dict.
    pub fn render(&self, text: Text, default: &str, cx: &RenderCx<'_>) -> Result<Rendered, Error> {
        if text.as_str().trim().is_empty() {
            let warnings = match text.as_str().is_empty() {
                true => Vec::new(),
                false => vec![format!("Template is nothing but whitespace: {}", text.file())],
            };
            return Ok(Rendered::new(Data::Value(Value::dict()), warnings));
        }
        match self.pipe_for(text.as_str(), default) {
            Ok(pipe) => Self::run(pipe, text, cx),
            // A pipe that a program or an option names has to be there.
            Err(error) if shebang(text.as_str()).is_none() => Err(error),
            // One that a file names: Salt says so in the log and goes on as if the file were empty.
            // Trees count on it: a file for a renderer that other machines have does not stop the
            // states beside it.
            Err(error) => {
                let place = format!("{}:1: ", text.file());
                let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                let mut empty = Rendered::new(Data::Value(Value::dict()), Vec::new());
                empty.errors.push(format!("{place}{error}{hint}"));
                Ok(empty)
            }
        }
    }

    /// Runs a text through a pipe that has been read already, whatever its first line says.
    pub fn run(pipe: Pipe, text: Text, cx: &RenderCx<'_>) -> Result<Rendered, Error> {
        let Pipe { steps, warnings } = pipe;
        let windows = text.as_str().contains("\r\n");
        let mut data = Data::Text(text);
        if steps.is_empty() {
            data = Data::Value(Value::dict());
        }
        for step in &steps {
            data = step.renderer.render(data, &step.args, cx)?;
        }
        // A text keeps the line ends of its source.
        if let Data::Text(text) = &mut data
            && windows
            && !text.as_str().contains("\r\n")
        {
            *text = text.rendered(text.as_str().replace('\n', "\r\n"), None);
        }
        Ok(Rendered::new(data, warnings))
    }
}

/// Returns the pipe that the first line names: `#!jinja|yaml`, but not `#!/bin/sh`.
pub fn shebang(text: &str) -> Option<&str> {
    let first = text.lines().next()?;
    if first.starts_with("#!/") {
        return None;
    }
    first.strip_prefix("#!").map(str::trim_end)
}

/// Returns the pipe that a text names which came from no file (`slsutil.renderer string=…`): its
/// first word counts, wherever it stands, and so a renderer gets no arguments.
pub fn shebang_of_string(text: &str) -> Option<&str> {
    text.split_whitespace().next().and_then(shebang)
}

/// Returns the text that a renderer needs; Salt fails alike when data comes instead.
pub fn need_text(input: Data, renderer: &str) -> Result<Text, Error> {
    match input {
        Data::Text(text) => Ok(text),
        Data::Value(value) => Err(Error::of_class(
            "AttributeError",
            match &value {
                Value::Dict(dict) if dict.is_ordered() => {
                    "'collections.OrderedDict' object has no attribute 'read'".into()
                }
                other => format!("'{}' object has no attribute 'read'", other.type_name()),
            },
        )
        .with_hint(format!(
            "`{renderer}` reads text, but an earlier renderer of the pipe has made data already"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles each line, so that lines move.
    struct Double;

    #[derive(Debug)]
    struct Halved;

    impl Lines for Halved {
        fn source_of(&self, line: u32) -> Option<(Option<Arc<str>>, u32)> {
            Some((None, line.div_ceil(2)))
        }
    }

    impl Renderer for Double {
        fn name(&self) -> &str {
            "double"
        }

        fn render(&self, input: Data, args: &str, _: &RenderCx<'_>) -> Result<Data, Error> {
            let text = need_text(input, self.name())?;
            let doubled = text.as_str().lines().map(|line| format!("{line}\n{args}#\n")).collect();
            Ok(Data::Text(text.rendered(doubled, Some(Arc::new(Halved)))))
        }
    }

    fn renderers() -> Renderers {
        let mut renderers = Renderers::new();
        renderers.register(Arc::new(Double));
        renderers
    }

    fn render(text: &str, default: &str) -> Result<Rendered, Error> {
        let context = Dict::new();
        let cx = RenderCx { saltenv: "base", sls: "web", path: None, context: &context };
        renderers().render(Text::new("web.sls", text), default, &cx)
    }

    fn check(text: &str, default: &str, expected: &str) {
        match render(text, default) {
            Ok(rendered) => assert_eq!(rendered.data.into_value().repr(), expected, "{text:?}"),
            Err(error) => assert_eq!(error.to_string(), expected, "{text:?}"),
        }
    }

    #[test]
    fn the_first_line_names_the_pipe() {
        assert_eq!(shebang("#!jinja|yaml\na: 1"), Some("jinja|yaml"));
        assert_eq!(shebang("#! jinja | yaml \r\na"), Some(" jinja | yaml"));
        assert_eq!(shebang("#!/bin/sh\n"), None);
        assert_eq!(shebang("a: 1\n#!json\n"), None);
        assert_eq!(shebang("\n#!json\n"), None);
        assert_eq!(shebang(""), None);
        assert_eq!(shebang_of_string("\n #!jinja -s|yaml\na: 1"), Some("jinja"));
        assert_eq!(shebang_of_string("a #!yaml"), None);
        assert_eq!(shebang_of_string(""), None);
        check("#!text\na: 1\n", "yaml", "'#!text\\na: 1\\n'");
        check("#!/bin/sh\na: 1\n", "yaml", "{'a': 1}");
        check("#!json\n{\"a\": [1]}\n", "yaml", "{'a': [1]}");
        check("#! double | yaml \na: 1\n", "json", "{'a': 1}");
        check("#!yaml some arguments\na: 1\n", "json", "{'a': 1}");
    }

    #[test]
    fn what_is_empty_is_an_empty_dict() {
        for text in ["", "  \n\n", "# comment\n", "0\n", "[]\n", "~\n", "''\n"] {
            check(text, "yaml", "{}");
        }
        check("- a\n", "yaml", "['a']");
        check("hello\n", "yaml", "'hello'");
        let warnings = render(" \n", "yaml").expect("empty").warnings;
        assert_eq!(warnings, ["Template is nothing but whitespace: web.sls"]);
    }

    #[test]
    fn unknown_renderers_are_named() {
        let check = |text: &str, default: &str, expected: &str| {
            let rendered = render(text, default).expect("the run goes on");
            assert_eq!(rendered.data.into_value().repr(), "{}");
            assert_eq!(rendered.errors, [expected]);
        };
        check(
            "#!yml\na: 1\n",
            "yaml",
            "web.sls:1: The renderer \"yml\" is not available; available: double, json, msgpack, text, toml, yaml, yamlex; did you mean `yaml`?",
        );
        check(
            "#!\na: 1\n",
            "yaml",
            "web.sls:1: The renderer \"\" is not available; available: double, json, msgpack, text, toml, yaml, yamlex",
        );
        let error = render("a: 1\n", "jinja|yaml").map(|_| ()).expect_err("an option names it");
        assert_eq!(
            error.to_string(),
            "The renderer \"jinja\" is not available (in \"jinja|yaml\"); available: double, json, msgpack, text, toml, yaml, yamlex"
        );
    }

    #[test]
    fn lists_decide_what_may_be_used() {
        let mut renderers = renderers();
        renderers.allow(Vec::new(), vec!["double".into()]);
        let pipe = renderers.pipe("double|yaml").expect("the rest remains");
        assert_eq!(format!("{:?}", pipe.steps), "[yaml ]");
        assert_eq!(
            pipe.warnings,
            ["The renderer \"double\" is disallowed by configuration and will be skipped."]
        );
        renderers.allow(vec!["yaml".into()], Vec::new());
        assert_eq!(renderers.pipe("double|yaml|json").expect("the rest").steps.len(), 1);
    }

    #[test]
    fn arguments_follow_the_name() {
        let pipe = renderers().pipe("double  -a -b |yaml").expect("known");
        assert_eq!(format!("{:?}", pipe.steps), "[double -a -b, yaml ]");
    }

    #[test]
    fn data_does_not_go_into_a_text_renderer() {
        check("a: 1\n", "yaml|yaml", "'collections.OrderedDict' object has no attribute 'read'");
    }

    #[test]
    fn errors_name_the_authors_line() {
        let error = render("#!double|yaml\na: 1\nb: c: d\n", "yaml").expect_err("not YAML");
        assert_eq!(error.to_string(), "mapping values are not allowed in this context");
        assert_eq!(error.place(), Some(&Place::new("web.sls", 3, 5)));
        assert_eq!(error.source_line(), Some("b: c: d"));
        assert_eq!(error.accident(), None);
    }

    #[test]
    fn values_know_the_authors_line() {
        let value = render("#!double|yaml\na: 1\nb:\n  - c\n", "").expect("YAML").data.into_value();
        let place = value.as_dict().and_then(|dict| dict.place_of("b").cloned());
        assert_eq!(place, Some(Place::new("web.sls", 3, 1)));
    }

    #[test]
    fn line_ends_are_kept() {
        check("#!double\r\na\r\n", "yaml", "'#!double\\r\\n#\\r\\na\\r\\n#\\r\\n'");
    }
}
