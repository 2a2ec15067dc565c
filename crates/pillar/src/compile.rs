//! From a request to a pillar: top files, SLS, external sources, overrides, in Salt's order.

use std::{collections::HashMap, sync::Arc};

use halite_spec::{Error, Host};
use halite_target::{
    Minion,
    top::{self, Matching, PillarTop, Tops},
};
use halite_value::{Dict, Place, SmolStr, Value, lookup, merge, suggest};

use crate::{
    Decrypter, Renderer, Source,
    ext::{self, ExtArgs, ExtCx, ExtPillar},
    files::PillarFiles,
    inputs::{Input, Inputs},
};

/// Whose pillar is wanted.
#[derive(Clone, Default)]
pub struct Request {
    /// The configuration: the master's, or the minion's own.
    pub opts: Dict,
    pub minion_id: String,
    pub grains: Dict,
    pub saltenv: Option<String>,
    pub pillarenv: Option<String>,
    /// Given on the command line; wins over everything.
    pub pillar_override: Dict,
    /// It is merged behind the files only, as without a master; else it stands before them, too, which
    /// shows in the order of keys and of merged lists.
    pub override_last: bool,
    /// What the minion sent along for external sources.
    pub extra_minion_data: Dict,
    /// An external source for this time only; must be allowed by `on_demand_ext_pillar`.
    pub ext: Option<Dict>,
    /// The pillar known before: templates and targets see it; it is no part of the result.
    pub current: Dict,
}

impl Request {
    pub(crate) fn opt_text(&self, name: &str) -> Option<String> {
        let value = self.opts.get(name).filter(Value::truthy);
        value.map(|value| value.to_str().to_string())
    }

    pub(crate) fn opt_flag(&self, name: &str, default: bool) -> bool {
        self.opts.get(name).map_or(default, |value| value.truthy())
    }

    fn saltenv(&self) -> Option<String> {
        self.saltenv.clone().or_else(|| self.opt_text("saltenv")).filter(|env| !env.is_empty())
    }

    fn pillarenv(&self) -> Option<String> {
        let from_saltenv = self.opt_flag("pillarenv_from_saltenv", false);
        let given = self.pillarenv.clone();
        let given = given.or_else(|| self.saltenv.clone().filter(|_| from_saltenv));
        given.or_else(|| self.opt_text("pillarenv")).filter(|env| !env.is_empty())
    }

    pub(crate) fn renderer(&self) -> String {
        self.opt_text("renderer").unwrap_or_else(|| "jinja|yaml".into())
    }
}

/// A file that could not be rendered, with the whole error: for logs and for whoever wrote it.
#[derive(Debug)]
pub struct Failure {
    pub sls: String,
    pub saltenv: String,
    pub error: Error,
}

/// A compiled pillar.
#[derive(Debug, Default)]
pub struct Compiled {
    /// With `_errors`, if there were any.
    pub pillar: Dict,
    /// What went wrong, in Salt's words: they are shown to minions, so they tell little.
    pub errors: Vec<String>,
    /// What went wrong while rendering, in full.
    pub failures: Vec<Failure>,
    /// What the result was made from.
    pub inputs: Vec<Input>,
}

/// Compiles pillar.
pub struct Compiler {
    host: Arc<dyn Host>,
    renderer: Arc<dyn Renderer>,
    ext: Vec<Arc<dyn ExtPillar>>,
    decrypter: Option<Arc<dyn Decrypter>>,
}

impl Compiler {
    /// Makes a compiler with the built-in external sources.
    pub fn new(host: Arc<dyn Host>, renderer: Arc<dyn Renderer>) -> Self {
        Self { host, renderer, ext: ext::built_in(), decrypter: None }
    }

    /// Adds an external source; it takes the place of one of the same name.
    #[must_use]
    pub fn with_ext(mut self, ext: Arc<dyn ExtPillar>) -> Self {
        self.ext.retain(|own| own.name() != ext.name());
        self.ext.push(ext);
        self
    }

    #[must_use]
    pub fn with_decrypter(mut self, decrypter: Arc<dyn Decrypter>) -> Self {
        self.decrypter = Some(decrypter);
        self
    }

    /// Compiles a pillar. Whatever goes wrong is told in the result.
    pub fn compile(&self, request: &Request) -> Compiled {
        let inputs = Arc::new(Inputs::default());
        let (saltenv, pillarenv) = (request.saltenv(), request.pillarenv());
        let env = pillarenv.clone().or_else(|| saltenv.clone()).unwrap_or_else(|| "base".into());
        let files = PillarFiles::new(self.host.clone(), &request.opts, &env, inputs.clone());
        let run = Run {
            compiler: self,
            request,
            files: Arc::new(files),
            merging: Merging::new(request),
            saltenv,
            pillarenv,
            visible: request.current.shallow_copy(),
            ignore_missing: Dict::new(),
            named: HashMap::new(),
            failures: Vec::new(),
        };
        let mut compiled = run.all();
        compiled.inputs = inputs.take();
        compiled
    }
}

/// How sources are merged: `pillar_source_merging_strategy`, `pillar_merge_lists`.
#[derive(Clone, Copy)]
pub(crate) struct Merging {
    strategy: merge::Strategy,
    lists: bool,
}

impl Merging {
    pub(crate) fn new(request: &Request) -> Self {
        let name = request.opt_text("pillar_source_merging_strategy");
        let name = name.as_deref().unwrap_or("smart");
        let strategy = merge::Strategy::named(name, &request.renderer());
        if strategy.is_none() {
            tracing::warn!("Unknown merging strategy '{name}', fallback to recurse");
        }
        // Lists are joined only by strategies Salt hands that wish to.
        let lists = strategy.is_some() && name != "none";
        Self {
            strategy: strategy.unwrap_or(merge::Strategy::Recurse),
            lists: lists && request.opt_flag("pillar_merge_lists", false),
        }
    }

    /// Merges two dicts; something else is replaced.
    pub(crate) fn merge(self, first: &Value, second: &Value) -> Value {
        merge::merge(first, second, self.strategy, self.lists).unwrap_or_else(|_| second.clone())
    }

    pub(crate) fn dicts(self, first: &Dict, second: &Dict) -> Dict {
        match self.merge(&first.into(), &second.into()) {
            Value::Dict(merged) => merged,
            _ => Dict::new(),
        }
    }
}

/// One compilation.
pub(crate) struct Run<'a> {
    pub(crate) compiler: &'a Compiler,
    pub(crate) request: &'a Request,
    pub(crate) files: Arc<PillarFiles>,
    pub(crate) merging: Merging,
    saltenv: Option<String>,
    pillarenv: Option<String>,
    /// The pillar as templates and targets see it.
    visible: Dict,
    /// SLS that may be missing: `{environment: [sls …]}`.
    pub(crate) ignore_missing: Dict,
    /// Where the top files name an SLS, by environment and name; for messages.
    pub(crate) named: HashMap<(String, String), Place>,
    failures: Vec<Failure>,
}

impl Run<'_> {
    fn all(mut self) -> Compiled {
        let mut top_errors = Vec::new();
        let top = self.top(&mut top_errors);
        let mut errors = Vec::new();
        let pillar = Dict::new();
        if self.request.opt_flag("ext_pillar_first", false) {
            let ext = self.external(&self.request.pillar_override, &mut errors);
            self.visible.update(&ext);
            let rendered = self.rendered(&top, &mut errors);
            pillar.update(&self.merging.dicts(&ext, &rendered));
        } else {
            let rendered = self.rendered(&top, &mut errors);
            pillar.update(&rendered);
            self.visible.update(&rendered);
            let ext = self.external(&pillar, &mut errors);
            pillar.update(&ext);
        }
        errors.extend(top_errors);
        if self.request.opt_flag("pillar_opts", false) {
            pillar.insert("master", self.shown_opts());
        }
        if !errors.is_empty() {
            pillar.insert("_errors", errors.clone());
        }
        let over = &self.request.pillar_override;
        let pillar = if over.is_empty() { pillar } else { self.merging.dicts(&pillar, over) };
        let decrypt_errors = self.decrypt(&pillar);
        if !decrypt_errors.is_empty() {
            errors.extend(decrypt_errors);
            pillar.insert("_errors", errors.clone());
        }
        for error in &errors {
            tracing::error!("Pillar render error: {error}");
        }
        Compiled { pillar, errors, failures: self.failures, inputs: Vec::new() }
    }

    /// Renders a text, keeping the whole error.
    pub(crate) fn render(
        &mut self,
        path: &std::path::Path,
        text: &str,
        sls: &str,
        saltenv: &str,
        defaults: &Dict,
    ) -> Result<Value, String> {
        let source = Source {
            path,
            text,
            sls,
            saltenv,
            renderer: &self.request.renderer(),
            defaults,
            pillar: &self.visible,
            request: self.request,
            files: &self.files,
        };
        self.compiler.renderer.render(&source).map_err(|error| self.failed(sls, saltenv, error))
    }

    pub(crate) fn failed(&mut self, sls: &str, saltenv: &str, error: Error) -> String {
        let text = error.to_string();
        let (mut place, mut hint) = (String::new(), String::new());
        if let Error::Source { place: at, help, .. } = &error {
            place = at.as_ref().map(|at| format!("\n  --> {at}")).unwrap_or_default();
            hint = help.as_ref().map(|help| format!("\n   = help: {help}")).unwrap_or_default();
        }
        tracing::error!("Rendering SLS '{sls}' failed, render error:\n{text}{place}{hint}");
        self.failures.push(Failure { sls: sls.into(), saltenv: saltenv.into(), error });
        text
    }

    /// Returns the environments whose top files count.
    fn top_environments(&self) -> Vec<SmolStr> {
        if let Some(pillarenv) = &self.pillarenv {
            let known = self.files.roots(pillarenv).is_some();
            return if known { vec![pillarenv.into()] } else { Vec::new() };
        }
        let all = self.files.environments();
        let strategy = self.request.opt_text("pillar_source_merging_strategy");
        if strategy.as_deref() == Some("none") {
            let only = self.saltenv.as_deref().unwrap_or("base");
            return all.into_iter().filter(|env| env == only).collect();
        }
        all
    }

    fn top(&mut self, errors: &mut Vec<String>) -> PillarTop {
        let mut tops: Tops = Vec::new();
        let name = self.request.opt_text("state_top").unwrap_or_else(|| "top.sls".into());
        let name = name.strip_prefix("salt://").unwrap_or(&name).to_owned();
        for env in self.top_environments() {
            match self.top_file(&name, &env) {
                Ok(Some(top)) => tops.push((env, vec![top])),
                Ok(None) => {}
                Err(why) => {
                    errors.push(format!("Rendering Primary Top file failed, render error:\n{why}"));
                    break;
                }
            }
        }
        for (env, files) in &mut tops {
            let mut done: Vec<SmolStr> = Vec::new();
            let includes = files.iter().flat_map(top::take_includes).collect::<Vec<_>>();
            for sls in includes {
                if done.contains(&sls) {
                    continue;
                }
                match self.included_top(&sls, env) {
                    Ok(top) => files.extend(top),
                    Err(why) => errors
                        .push(format!("Rendering Top file {sls} failed, render error:\n{why}")),
                }
                done.push(sls);
            }
        }
        let merged = top::merge_pillar(&tops).unwrap_or_else(|error| {
            tracing::error!("pillar top file: {error}");
            errors.push("Error encountered while rendering pillar top file.".into());
            PillarTop::default()
        });
        self.ignore_missing = merged.ignore_missing.clone();
        merged
    }

    fn top_file(&mut self, name: &str, env: &str) -> Result<Option<Value>, String> {
        let found = self.files.read(env, name).map_err(|error| error.to_string())?;
        let Some((path, text)) = found else { return Ok(None) };
        let top = self.render(&path, &text, "", env, &Dict::new())?;
        for odd in top::oddities(&top, name, true) {
            tracing::error!("pillar: {odd}");
        }
        for (env, sls, place) in top::named(&top) {
            self.named.entry((env, sls)).or_insert(place);
        }
        Ok(Some(top))
    }

    fn included_top(&mut self, sls: &str, env: &str) -> Result<Option<Value>, String> {
        let found = self.files.sls(env, sls).map_err(|error| error.to_string())?;
        let Some(found) = found else { return Ok(None) };
        self.render(&found.path, &found.text, "", env, &Dict::new()).map(Some)
    }

    /// Renders what the top gives the minion.
    fn rendered(&mut self, top: &PillarTop, errors: &mut Vec<String>) -> Dict {
        let request = self.request;
        let nodegroups = request.opts.get("nodegroups");
        let visible = self.visible.clone();
        let mut on_error = |target: &Value, error: halite_target::Error| {
            tracing::error!("pillar top file, target {target}: {error}");
            // Whom a line means that names a kind of match nobody knows cannot be told: states must
            // not run as if it meant nobody (CVE-2024-37088). Salt gives no pillar at all then.
            if matches!(&error.kind, halite_target::Kind::Engine(_))
                && target.to_str() != error.expr
            {
                errors.push(format!("Error encountered while rendering pillar top file: {error}"));
            }
        };
        let (renderer, inputs) = (&self.compiler.renderer, self.files.inputs().clone());
        let custom = |kind: &str, target: &Value| {
            let answer = renderer.matches(kind, target)?;
            inputs.add(Input::Volatile(format!("matcher {kind}")));
            Some(answer)
        };
        let mut matching = Matching {
            env: self.pillarenv.as_deref(),
            minion: Minion {
                id: &request.minion_id,
                grains: Some(&request.grains),
                pillar: Some(&visible),
                ..Minion::default()
            },
            nodegroups: nodegroups.as_ref().and_then(Value::as_dict),
            custom: Some(&custom),
            on_error: &mut on_error,
        };
        let mut matches = top::pillar_matches(&top.top, &mut matching);
        self.sort_by_env_order(&mut matches);
        let mut pillar = Value::Dict(match request.override_last {
            true => Dict::new(),
            false => request.pillar_override.shallow_copy(),
        });
        for (env, names) in matches {
            for rendered in self.environment(&env, &names, errors) {
                pillar = self.merging.merge(&pillar, &rendered);
            }
        }
        match pillar {
            Value::Dict(pillar) => pillar,
            _ => Dict::new(),
        }
    }

    /// The last environment of `env_order` wins; those it does not name come after it.
    fn sort_by_env_order(&self, matches: &mut [(SmolStr, Vec<SmolStr>)]) {
        let order = self.request.opts.get("env_order").and_then(|list| list.items_of_sequence());
        let Some(order) = order.filter(|order| !order.is_empty()) else { return };
        let place = |env: &SmolStr| order.iter().position(|own| own == env.as_str());
        matches.sort_by_key(|(env, _)| place(env).unwrap_or(usize::MAX));
    }

    fn external(&self, pillar: &Dict, errors: &mut Vec<String>) -> Dict {
        let request = self.request;
        let malformed = || "The \"ext_pillar\" option is malformed".to_owned();
        let mut runs = match request.opts.get("ext_pillar") {
            None => Vec::new(),
            Some(Value::List(runs)) => runs.to_vec(),
            Some(_) => {
                errors.push(malformed());
                return pillar.clone();
            }
        };
        runs.extend(self.on_demand());
        let over = &request.pillar_override;
        let mut pillar = pillar.clone();
        if !over.is_empty() {
            pillar = self.merging.dicts(&pillar, over);
        }
        let excluded = request.opts.get("exclude_ext_pillar");
        let excluded = excluded.and_then(|list| list.items_of_sequence()).unwrap_or_default();
        for run in runs {
            let Value::Dict(run) = run else {
                errors.push(malformed());
                return Dict::new();
            };
            let run = run.entries();
            if run.first().is_some_and(|(name, _)| excluded.contains(name)) {
                continue;
            }
            let mut last = None;
            for (name, args) in run {
                match self.external_source(&name.to_str(), &args, &pillar) {
                    Ok(Some(data)) => last = Some(data),
                    Ok(None) => {}
                    Err(error) => {
                        errors.push(format!("Failed to load ext_pillar {name}: {error}"));
                    }
                }
            }
            if let Some(Value::Dict(data)) = last.filter(Value::truthy) {
                pillar = self.merging.dicts(&pillar, &data);
            }
        }
        pillar
    }

    fn external_source(
        &self,
        name: &str,
        args: &Value,
        pillar: &Dict,
    ) -> Result<Option<Value>, Error> {
        let Some(source) = self.compiler.ext.iter().find(|source| source.name() == name) else {
            let sources = self.compiler.ext.iter().map(|source| source.name());
            let help = suggest::help(name, sources);
            tracing::error!("ext_pillar interface named {name} is unavailable{help}");
            return Ok(None);
        };
        self.files.inputs().add(Input::Volatile(format!("ext_pillar {name}")));
        let cx = ExtCx {
            host: self.files.host(),
            minion_id: &self.request.minion_id,
            pillar,
            pillarenv: self.pillarenv.as_deref(),
            renderer: &*self.compiler.renderer,
            request: self.request,
            files: &self.files,
            compiler: self.compiler,
        };
        match source.pillar(&cx, &ExtArgs(args))? {
            data @ (Value::Dict(_) | Value::Null) => Ok(Some(data)),
            other => Err(Error::failed(format!("it gave a {}, not a dict", other.type_name()))),
        }
    }

    /// Returns the source asked for this time, if it is allowed.
    fn on_demand(&self) -> Option<Value> {
        let ext = self.request.ext.as_ref()?;
        let allowed = self.request.opts.get("on_demand_ext_pillar");
        let allowed = allowed.and_then(|list| list.items_of_sequence()).unwrap_or_default();
        let refused: Vec<String> = ext
            .keys()
            .iter()
            .filter(|name| !allowed.contains(name))
            .map(ToString::to_string)
            .collect();
        if refused.is_empty() {
            return Some(Value::from(ext));
        }
        tracing::error!(
            "a minion asked for ext_pillar modules that `on_demand_ext_pillar` does not allow: {}",
            refused.join(", ")
        );
        None
    }

    /// Returns the configuration as `pillar_opts` shows it.
    fn shown_opts(&self) -> Dict {
        let hidden = ["pillar", "__context__", "functions", "matchers", "rend"];
        let shown: Dict = self
            .request
            .opts
            .entries()
            .into_iter()
            .filter(|(name, _)| !name.as_str().is_some_and(|name| hidden.contains(&name)))
            .collect();
        shown.insert("saltversion", "3008.3");
        shown
    }

    /// Decrypts the keys `decrypt_pillar` names, in place.
    fn decrypt(&self, pillar: &Dict) -> Vec<String> {
        let Some(option) = self.request.opts.get("decrypt_pillar").filter(Value::truthy) else {
            return Vec::new();
        };
        let Some(keys) = decrypt_keys(&option) else {
            return vec!["decrypt_pillar config option is malformed".into()];
        };
        let text = |name: &str, default: &str| {
            self.request.opt_text(name).unwrap_or_else(|| default.into())
        };
        let delimiter = text("decrypt_pillar_delimiter", ":");
        let default = text("decrypt_pillar_default", "gpg");
        let mut errors = Vec::new();
        for (key, renderer) in keys {
            let whole = Value::from(pillar);
            let Some(value) = lookup::traverse_dict(&whole, &key, &delimiter) else { continue };
            let renderer = renderer.unwrap_or_else(|| default.clone());
            let decrypted = match &self.compiler.decrypter {
                Some(decrypter) => decrypter.decrypt(&value, &renderer),
                None => Err(Error::failed(format!("no `{renderer}` to decrypt with"))),
            };
            match decrypted {
                Ok(plain) => {
                    let (parent, child) = key.rsplit_once(&delimiter).unwrap_or(("", &key));
                    let parent = if parent.is_empty() {
                        Some(whole)
                    } else {
                        lookup::traverse_dict(&whole, parent, &delimiter)
                    };
                    if let Some(Value::Dict(parent)) = parent {
                        parent.insert(child, plain);
                    }
                }
                Err(error) => {
                    errors.push(format!("Failed to decrypt pillar key '{key}': {error}"));
                }
            }
        }
        errors
    }
}

/// Reads `decrypt_pillar`: a dict, or a list of names and one-entry dicts.
fn decrypt_keys(option: &Value) -> Option<Vec<(String, Option<String>)>> {
    let renderer = |value: &Value| value.truthy().then(|| value.to_str().to_string());
    let of_dict = |dict: &Dict| -> Vec<(String, Option<String>)> {
        dict.into_iter().map(|(key, value)| (key.to_str().to_string(), renderer(&value))).collect()
    };
    match option {
        Value::Dict(dict) => Some(of_dict(dict)),
        Value::List(items) => {
            let mut keys = Vec::new();
            for item in items {
                match item {
                    Value::Str(key) => keys.push((key.to_string(), None)),
                    Value::Dict(dict) if dict.len() == 1 => keys.extend(of_dict(&dict)),
                    _ => return None,
                }
            }
            Some(keys)
        }
        _ => None,
    }
}
