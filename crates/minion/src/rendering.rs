//! How this minion renders: the pipe of renderers, with a Jinja that can call functions.
//!
//! One [`Pipes`] lives as long as the program: it keeps compiled templates. For each rendering it
//! registers a Jinja that knows the context it renders for: `salt` calls functions through the
//! `Cx`, imports come from the file server (or, for pillar, from the pillar roots). `py` and users'
//! own renderers and filters are Python's business (`python.rs`).

use std::{cell::RefCell, path::Path, sync::Arc};

use halite_pillar::{PillarFiles, Source as PillarSource};
use halite_renderers::{
    Data, Error as RenderError, Lines, RenderCx, Renderer, Renderers, Text,
    gpg::Gpg,
    jinja::{
        self, Args, Environment, Files, Host as JinjaHost, HostFunction, HostLookup, LineMap,
        Lookup, SaltLoader, Source,
    },
    pipeline::need_text,
    sls_context,
    stateconf::Stateconf,
};
use halite_spec::{ArgError, Call, Cx, Error, Param, Result, Template, host::Kind, utf8};
use halite_value::{Dict, Place, Value, suggest};
use parking_lot::Mutex;

use crate::{
    Rendering,
    python::{Names, Python},
    registry,
};

/// Renders with everything this binary has.
pub struct Pipes {
    /// For SLS files; they have options of their own.
    sls: Environment,
    other: Environment,
    python: Option<Arc<Python>>,
    /// Both environments with users' filters, and which generation of them.
    filtered: Mutex<Option<(u64, Environment, Environment)>>,
}

impl Pipes {
    pub fn new(opts: &Dict) -> Self {
        let environment = |option: &str| {
            let mut environment = Environment::new();
            if let Some(Value::Dict(options)) = opts.get(option) {
                for (name, value) in &options {
                    if !environment.set_option(&name.to_str(), &value) {
                        let help = suggest::help(&name.to_str(), jinja::OPTIONS);
                        tracing::warn!("{option}: there is no option `{name}` of Jinja{help}");
                    }
                }
            }
            environment
        };
        let mut sls = environment("jinja_sls_env");
        for (option, name) in
            [("jinja_trim_blocks", "trim_blocks"), ("jinja_lstrip_blocks", "lstrip_blocks")]
        {
            if let Some(value) = opts.get(option).filter(Value::truthy) {
                sls.set_option(name, &value);
            }
        }
        Self {
            sls,
            other: environment("jinja_env"),
            python: Python::new(opts),
            filtered: Mutex::default(),
        }
    }

    /// Returns an environment, with the filters users have.
    fn environment(&self, cx: &Cx, is_sls: bool) -> Environment {
        let pick = |sls: &Environment, other: &Environment| {
            if is_sls { sls.clone() } else { other.clone() }
        };
        let Some(python) = self.python.as_ref() else { return pick(&self.sls, &self.other) };
        let names = python.jinja_names(cx);
        if names.is_empty() {
            return pick(&self.sls, &self.other);
        }
        let generation = python.bridge().generation();
        let mut filtered = self.filtered.lock();
        match &*filtered {
            Some((known, sls, other)) if *known == generation => pick(sls, other),
            _ => {
                let sls = with_names(self.sls.clone(), python, &names);
                let other = with_names(self.other.clone(), python, &names);
                let picked = pick(&sls, &other);
                *filtered = Some((generation, sls, other));
                picked
            }
        }
    }

    /// Adds the renderers that are written in Python.
    fn add_python(&self, cx: &Cx, renderers: &mut Renderers) {
        let Some(python) = &self.python else { return };
        let add = |name: &str| {
            Arc::new(Script { cx: cx.clone(), python: Arc::clone(python), name: name.to_owned() })
        };
        for name in [
            "py",
            "pyobjects",
            "mako",
            "genshi",
            "cheetah",
            "wempy",
            "hjson",
            "json5",
            "dson",
            "nacl",
        ] {
            renderers.register(add(name));
        }
        if !python.bridge().has_files("renderers") {
            return;
        }
        python.remember(cx);
        if let Some(users) = python.names("renderers") {
            for name in users.functions.iter().filter_map(|name| name.strip_suffix(".render")) {
                renderers.register(add(name));
            }
        }
    }

    fn renderers(&self, cx: &Cx, files: ImportFiles, is_sls: bool) -> Renderers {
        let names = |option: &str| -> Vec<String> {
            let list = cx.opt(option).and_then(|list| list.items_of_sequence()).unwrap_or_default();
            list.iter().map(Value::to_string).collect()
        };
        let mut renderers = Renderers::new();
        let environment = self.environment(cx, is_sls);
        self.add_python(cx, &mut renderers);
        renderers.register(Arc::new(Jinja {
            cx: cx.clone(),
            environment: environment.with_host(Arc::new(Machine(cx.clone()))),
            files,
            is_sls,
        }));
        renderers.register(Arc::new(Gpg {
            open: opener(cx),
            must_succeed: cx.opt("gpg_decrypt_must_succeed").is_none_or(|flag| flag.truthy()),
        }));
        let extended = cx.context.get_or_insert_with("stateconf_extended", Value::dict);
        let extended = extended.as_dict().cloned().unwrap_or_default();
        renderers.register(Arc::new(Stateconf::new(renderers.clone(), extended)));
        renderers.allow(names("renderer_whitelist"), names("renderer_blacklist"));
        renderers
    }

    /// Renders; the first line of a file of data may name its pipe, a template's may not.
    fn run(&self, cx: &Cx, template: &Template, is_template: bool) -> Result<Data> {
        let name = template.source.clone().unwrap_or_else(|| "<template>".to_owned());
        let text = Text::new(name.as_str(), template.text.clone());
        let sls = template.sls.clone().unwrap_or_default();
        let render = RenderCx {
            saltenv: &template.saltenv,
            sls: &sls,
            path: template.source.as_deref(),
            context: &template.context,
        };
        let files = ImportFiles::Served { cx: cx.clone(), saltenv: template.saltenv.clone() };
        let renderers = self.renderers(cx, files, template.sls.is_some());
        let rendered = match is_template {
            true => renderers
                .pipe(&template.engine)
                .and_then(|pipe| Renderers::run(pipe, text, &render)),
            false => renderers.render(text, &template.engine, &render),
        };
        let rendered = rendered.map_err(source_error)?;
        for warning in &rendered.warnings {
            tracing::warn!("{warning}");
        }
        for error in &rendered.errors {
            tracing::error!("{error}");
        }
        Ok(rendered.data)
    }

    /// Returns users' external pillars, for a pillar compiler.
    pub fn ext_pillars(&self, cx: &Cx) -> Vec<Arc<dyn halite_pillar::ext::ExtPillar>> {
        self.python.as_ref().map(|python| python.ext_pillars(cx)).unwrap_or_default()
    }

    /// Asks a user's own matcher, if there is one for that kind of match.
    pub fn custom_match(&self, cx: &Cx, kind: &str, target: &Value) -> Option<bool> {
        self.python.as_ref()?.matches(cx, kind, target, None)
    }

    /// Renders a pillar file: its imports are pillar files, its pillar is the one so far.
    /// `functions`: the configuration that functions see, where it is not the template's.
    pub fn pillar(
        &self,
        cx: &Cx,
        functions: Option<&Dict>,
        source: &PillarSource<'_>,
    ) -> Result<Value> {
        let cx = Cx { pillar: source.pillar.clone(), ..cx.clone() };
        let files = ImportFiles::Pillar {
            files: Arc::clone(source.files),
            saltenv: source.saltenv.to_owned(),
            functions: functions.cloned(),
        };
        let renderers = self.renderers(&cx, files, true);
        halite_pillar::pipe::render(&renderers, source)
    }
}

impl Rendering for Pipes {
    fn render(&self, cx: &Cx, template: &Template) -> Result<String> {
        match self.run(cx, template, true)? {
            Data::Text(text) => Ok(text.as_str().to_owned()),
            Data::Value(value) => Ok(value.to_string()),
        }
    }

    fn compile(&self, cx: &Cx, template: &Template) -> Result<Value> {
        self.run(cx, template, false).map(Data::into_value)
    }

    fn python(&self) -> Option<Arc<Python>> {
        self.python.clone()
    }
}

thread_local! {
    /// For whom this thread renders: filters are part of an environment that outlives renderings.
    static RENDERING: RefCell<Vec<Cx>> = const { RefCell::new(Vec::new()) };
}

/// Renders with the context known to users' filters.
fn rendering_for<R>(cx: &Cx, work: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            RENDERING.with_borrow_mut(|stack| drop(stack.pop()));
        }
    }
    RENDERING.with_borrow_mut(|stack| stack.push(cx.clone()));
    let _leave = Leave;
    work()
}

/// A filter, test or global of a user's.
struct UsersFilter {
    python: Arc<Python>,
    what: &'static str,
    name: String,
}

impl jinja::Callable for UsersFilter {
    fn call(&self, args: Args) -> Result<Value, jinja::Error> {
        let cx = RENDERING.with_borrow(|stack| stack.last().cloned());
        let Some(cx) = cx else {
            return Err(jinja::Error::other("RuntimeError", "no template is being rendered"));
        };
        let kwargs: Dict = args.keyword.into_iter().collect();
        let given = vec![
            self.what.into(),
            self.name.as_str().into(),
            args.positional.into(),
            kwargs.into(),
        ];
        self.python.ask(&cx, &self.name, "jinja_call", given).map_err(|error| raised(&error))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn with_names(environment: Environment, python: &Arc<Python>, names: &Names) -> Environment {
    let make = |what: &'static str, name: &String| UsersFilter {
        python: Arc::clone(python),
        what,
        name: name.clone(),
    };
    let mut environment = environment;
    for name in &names.filters {
        environment = environment.with_filter(name, Arc::new(make("filters", name)));
    }
    for name in &names.tests {
        environment = environment.with_test(name, Arc::new(make("tests", name)));
    }
    for name in &names.globals {
        environment = environment.with_global(name, HostFunction::value(make("globals", name)));
    }
    environment
}

/// `py`, or a renderer of the user's.
struct Script {
    cx: Cx,
    python: Arc<Python>,
    name: String,
}

impl Renderer for Script {
    fn name(&self) -> &str {
        &self.name
    }

    fn render(&self, input: Data, args: &str, render: &RenderCx<'_>) -> Result<Data, RenderError> {
        let path = render.path.unwrap_or("<template>");
        let data = match &input {
            Data::Text(text) => text.as_str().into(),
            Data::Value(value) => value.clone(),
        };
        let context = render.context;
        let (verb, given) = if self.name == "py" {
            if matches!(input, Data::Value(_)) {
                return Err(RenderError::new("py renders text, not data"));
            }
            (
                "py",
                vec![data, path.into(), render.saltenv.into(), render.sls.into(), context.into()],
            )
        } else {
            let given = vec![
                self.name.as_str().into(),
                data,
                path.into(),
                render.saltenv.into(),
                render.sls.into(),
                args.into(),
                context.into(),
            ];
            ("render", given)
        };
        let what = if render.sls.is_empty() { path } else { render.sls };
        match self.python.ask(&self.cx, what, verb, given) {
            Ok(Value::Str(text)) => Ok(match input {
                Data::Text(source) => Data::Text(source.rendered(text.into(), None)),
                Data::Value(_) => Data::Text(Text::new(path, text)),
            }),
            Ok(value) => Ok(Data::Value(value)),
            Err(Error::Raised { class, message, traceback }) => {
                let text = traceback.unwrap_or_else(|| format!("{class}: {message}"));
                Err(RenderError::new(text.trim_end().to_owned()))
            }
            Err(error) => Err(RenderError::new(error.to_string())),
        }
    }
}

fn source_error(error: RenderError) -> Error {
    Error::Source {
        message: error.to_string(),
        class: error.accident().map(str::to_owned),
        place: error.place().cloned(),
        excerpt: error.source_line().map(str::to_owned),
        help: error.hint().map(str::to_owned),
    }
}

/// Opens OpenPGP messages with the configured key ring.
fn opener(cx: &Cx) -> halite_renderers::gpg::Open {
    let cx = cx.clone();
    Arc::new(move |message| {
        let folder = cx.opt_str("gpg_keydir").map(|text| text.to_string());
        let folder = folder.filter(|folder| !folder.is_empty()).unwrap_or_else(|| {
            let config = cx.opt_str("config_dir").map(|text| text.to_string());
            format!("{}/gpgkeys", config.as_deref().unwrap_or("/etc/salt"))
        });
        let words = ["gpg", "--homedir", &folder, "--status-fd", "2", "--no-tty", "--batch", "-d"];
        let command = halite_spec::Command {
            stdin: Some(message.as_bytes().to_vec()),
            ..halite_spec::Command::line(words).query()
        };
        let output = cx.host.run(&command).map_err(|error| error.to_string())?;
        // A bad message may end well for gpg, with nothing said.
        if output.ok() && !output.stdout.is_empty() {
            return Ok(output.stdout_text());
        }
        Err(output.stderr_text())
    })
}

/// Jinja, for one context.
struct Jinja {
    cx: Cx,
    environment: Environment,
    files: ImportFiles,
    /// The text is an SLS (or another file of data), not the template of a managed file.
    is_sls: bool,
}

impl Jinja {
    /// The names every template sees.
    fn context(&self, render: &RenderCx<'_>) -> Dict {
        let cx = &self.cx;
        let context = Dict::new();
        match &self.files {
            ImportFiles::Pillar { functions: Some(opts), .. } => {
                let own = Cx { opts: opts.clone(), ..cx.clone() };
                context.insert("salt", functions(&own));
            }
            _ => {
                context.insert("salt", functions(cx));
            }
        }
        context.insert("grains", &cx.grains);
        context.insert("pillar", &cx.pillar);
        context.insert("opts", &cx.opts);
        context.insert("saltenv", render.saltenv);
        context.insert("proxy", Value::Null);
        // A managed file's template does not know where it is.
        if self.is_sls {
            context.insert("sls", render.sls);
            context.insert("tplpath", render.path.map_or(Value::Null, Value::from));
            context.update(&sls_context(render.path, render.sls));
        }
        context.update(render.context);
        context
    }
}

impl Renderer for Jinja {
    fn name(&self) -> &str {
        "jinja"
    }

    fn render(&self, input: Data, _: &str, render: &RenderCx<'_>) -> Result<Data, RenderError> {
        let text = need_text(input, self.name())?;
        let local = self.cx.opt_str("file_client").as_deref() == Some("local");
        let loader = SaltLoader { files: self.files.clone(), local };
        let rendered = rendering_for(&self.cx, || {
            self.environment.render_salt(text.as_str(), &self.context(render), &loader)
        });
        match rendered {
            Ok(rendered) => {
                let lines = Arc::new(Moved(rendered.lines));
                Ok(Data::Text(text.rendered(rendered.text, Some(lines))))
            }
            Err(error) => Err(told(&error, &text, render)),
        }
    }
}

/// An error of a template in Salt's words, with the author's place.
fn told(error: &jinja::Error, text: &Text, render: &RenderCx<'_>) -> RenderError {
    let salt = error.as_salt(Some(render.sls).filter(|sls| !sls.is_empty()));
    let message = if salt.line > 0 {
        let excerpt = jinja::excerpt(text.as_str(), salt.line);
        format!("{}; line {}\n\n{excerpt}", salt.message, salt.line)
    } else {
        salt.message
    };
    let mut told = RenderError::new(message);
    if let Some(spot) = error.spot() {
        let file = spot.file.clone().unwrap_or_else(|| Arc::clone(text.file()));
        told = told.at(Place { file, line: spot.line, column: 0 }, text);
    }
    let better = error.suggestion().map(|word| format!("did you mean `{word}`?"));
    match better.or_else(|| error.note().map(str::to_owned)) {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

#[derive(Debug)]
struct Moved(LineMap);

impl Lines for Moved {
    fn source_of(&self, line: u32) -> Option<(Option<Arc<str>>, u32)> {
        self.0.source_of(line).map(|(file, line)| (file.cloned(), line))
    }
}

/// Where `import` and `include` look.
#[derive(Clone)]
enum ImportFiles {
    Served { cx: Cx, saltenv: String },
    Pillar { files: Arc<PillarFiles>, saltenv: String, functions: Option<Dict> },
}

impl Files for ImportFiles {
    fn list(&self) -> Vec<String> {
        match self {
            Self::Served { cx, saltenv } => cx.files.list(saltenv, "").unwrap_or_default(),
            Self::Pillar { .. } => Vec::new(),
        }
    }

    fn read(&self, path: &str) -> Result<Option<Source>, jinja::Error> {
        let found = match self {
            Self::Served { cx, saltenv } => {
                cx.files.cache(&format!("salt://{path}"), saltenv).and_then(|file| match file {
                    Some(file) => Ok(Some((file.clone(), utf8(cx.host.read(&file)?)?))),
                    // Without a master the files are here, and a path may be a whole one.
                    None if path.starts_with('/')
                        && cx.opt_str("file_client").as_deref() == Some("local") =>
                    {
                        let file = std::path::PathBuf::from(path);
                        let content = cx.host.read_if_there(&file)?;
                        Ok(content.map(utf8).transpose()?.map(|text| (file, text)))
                    }
                    None => Ok(None),
                })
            }
            Self::Pillar { files, saltenv, .. } => files.read(saltenv, path),
        };
        match found {
            Ok(Some((file, text))) => Ok(Some(Source {
                text: text.into(),
                file: Some(file.to_string_lossy().into_owned().into()),
            })),
            Ok(None) => Ok(None),
            Err(error) => Err(raised(&error)),
        }
    }
}

/// A function's error as templates see it: in Python's words where genuine Salt's are Python's own.
fn raised(error: &Error) -> jinja::Error {
    let words = match error {
        Error::Host(error) => error.python_words(),
        _ => None,
    };
    let traceback = match error {
        Error::Raised { traceback, .. } => traceback.clone(),
        _ => None,
    };
    let words = words.unwrap_or_else(|| error.to_string());
    jinja::Error::other(error.class().to_owned(), words).with_traceback(traceback)
}

/// Returns the `salt` of templates.
fn functions(cx: &Cx) -> Value {
    HostLookup::value(Functions { cx: cx.clone(), module: None })
}

/// All functions, or those of one module (`salt.cmd`).
struct Functions {
    cx: Cx,
    module: Option<String>,
}

impl Functions {
    fn full(&self, key: &str) -> String {
        match &self.module {
            Some(module) => format!("{module}.{key}"),
            None => key.to_owned(),
        }
    }
}

impl Lookup for Functions {
    fn item(&self, key: &str) -> Option<Value> {
        if !self.contains(key) {
            return None;
        }
        let name = self.full(key);
        Some(HostFunction::value(Function { cx: self.cx.clone(), name }))
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        if self.module.is_some() {
            return self.item(name);
        }
        let prefix = format!("{name}.");
        // The names of all functions are many; only users' modules need them.
        let known = registry::has_module(&self.cx, name)
            || self.cx.runtime.function_names(&self.cx).iter().any(|own| own.starts_with(&prefix));
        known
            .then(|| HostLookup::value(Self { cx: self.cx.clone(), module: Some(name.to_owned()) }))
    }

    fn class(&self) -> &str {
        match self.module {
            None => "salt.utils.templates.AliasedLoader",
            Some(_) => "salt.utils.templates.AliasedModule",
        }
    }

    fn contains(&self, key: &str) -> bool {
        let name = self.full(key);
        self.cx.runtime.has(&self.cx, &name) && !crate::barred::is_barred(&self.cx, &name)
    }

    fn keys(&self) -> Vec<String> {
        let names = self.cx.runtime.function_names(&self.cx);
        match &self.module {
            None => names,
            Some(module) => {
                let prefix = format!("{module}.");
                names
                    .iter()
                    .filter_map(|name| name.strip_prefix(&prefix))
                    .map(str::to_owned)
                    .collect()
            }
        }
    }
}

/// An execution function in a template.
struct Function {
    cx: Cx,
    name: String,
}

impl Function {
    /// Refuses an undefined argument that the function would look at; one that takes any value may
    /// well hand it on.
    fn check(&self, args: &Args) -> Result<(), jinja::Error> {
        let is_there = |value: &Value| jinja::use_of_undefined(value).is_none();
        if args.positional.iter().all(is_there) && args.keyword.iter().all(|(_, it)| is_there(it)) {
            return Ok(());
        }
        let Some(native) = self.cx.runtime.function(&self.cx, &self.name) else { return Ok(()) };
        let looks = |param: &&Param| {
            // Salt makes a copy of the default.
            let copies = self.name == "pillar.get" && param.name == "default";
            // Nothing can be done without these; only `test` hands them back as they are.
            let needed = param.default.is_none() && !self.name.starts_with("test.");
            !param.rest && (copies || needed || param.kind != "any value")
        };
        let by_place = args.positional.iter().zip(native.params);
        let by_name = args.keyword.iter().filter_map(|(name, value)| {
            let param = native.params.iter().find(|param| *name == param.name)?;
            Some((value, param))
        });
        let used = by_place.chain(by_name).filter(|(_, param)| looks(param));
        match used.map(|(value, _)| value).find_map(jinja::use_of_undefined) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl jinja::Callable for Function {
    fn call(&self, args: Args) -> Result<Value, jinja::Error> {
        self.check(&args)?;
        let kwargs: Dict = args.keyword.into_iter().collect();
        let call = Call { args: args.positional, kwargs };
        self.cx.call(&self.name, call).map_err(|error| match &error {
            Error::Args(mismatch) => {
                let native = registry::function(&self.name);
                let text = crate::failure::python_text(&self.name, native, mismatch);
                let told = jinja::Error::other(error.class().to_owned(), text);
                match mismatch {
                    ArgError::Unexpected { suggestion: Some(near), .. } => {
                        told.with_note(format!("did you mean `{near}`?"))
                    }
                    _ => told,
                }
            }
            error => raised(error),
        })
    }

    fn name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// The machine as filters may ask it.
struct Machine(Cx);

impl JinjaHost for Machine {
    fn which(&self, exe: &str) -> Result<Option<String>, jinja::Error> {
        Ok(self.0.host.which(exe).map(|path| path.to_string_lossy().into_owned()))
    }

    fn read_file(&self, path: &str, most: usize) -> Result<Vec<u8>, jinja::Error> {
        use std::io::Read as _;
        let file = self.0.host.open(Path::new(path)).map_err(|error| raised(&error.into()))?;
        let mut content = Vec::new();
        let read = file.take(most as u64).read_to_end(&mut content);
        read.map_err(|error| jinja::Error::other("OSError", error.to_string()))?;
        Ok(content)
    }

    fn list_files(&self, directory: &str) -> Result<Vec<String>, jinja::Error> {
        let mut found = vec![directory.to_owned()];
        let mut folders = vec![directory.to_owned()];
        while let Some(folder) = folders.pop() {
            for name in self.0.host.read_dir(Path::new(&folder)).unwrap_or_default() {
                let path = format!("{folder}/{}", name.to_string_lossy());
                let stat = self.0.host.stat(Path::new(&path), false);
                if stat.is_ok_and(|stat| stat.kind == Kind::Dir) {
                    folders.push(path.clone());
                }
                found.push(path);
            }
        }
        Ok(found)
    }

    fn uid(&self, user: Option<&str>) -> Result<Option<i64>, jinja::Error> {
        let Some(user) = user else { return Ok(Some(self.0.host.uid().into())) };
        let found = self.0.host.user_named(user).map_err(|error| raised(&error.into()))?;
        Ok(found.map(|user| user.uid.into()))
    }

    fn http_query(&self, url: &str, options: &Dict) -> Result<Value, jinja::Error> {
        let call = Call { args: vec![url.into()], kwargs: options.shallow_copy() };
        self.0.call("http.query", call).map_err(|error| raised(&error))
    }
}
