//! The state engine as the `state` module drives it: from a request to returns or data.

use std::sync::Arc;

use halite_highstate::{Gathered, Graph, High, Places, Problem, Run, RunOptions, Settings, umask};
use halite_spec::{Cx, Error, Result, StateRequest, StateRuns, Template, What, utf8};
use halite_target::top;
use halite_value::{Dict, SmolStr, Value, dict, entries, suggest};

use crate::{Engine, matching};

impl StateRuns for Engine {
    fn apply(&self, cx: &Cx, request: &StateRequest) -> Result<Value> {
        let cx = self.prepare(cx, request)?;
        // A single state runs whatever the pillar is like, as in Salt.
        let errors = pillar_errors(&cx, request);
        if !errors.is_empty() && !matches!(request.what, What::Low(_)) {
            let mut list = vec!["Pillar failed to render with the following messages:".to_owned()];
            list.extend(errors);
            return Ok(Value::list(list));
        }
        let gathered = match self.gather(&cx, request)? {
            Source::High(gathered) => *gathered,
            Source::Low(chunks) => return Ok(self.run_low(&cx, request, &chunks)),
            Source::Nothing(comment) => {
                cx.job.set_retcode(STATE_FAILURE);
                return Ok(no_states(&comment));
            }
        };
        let (graph, places) = match self.graph(&cx, gathered, request) {
            Ok(ordered) => ordered,
            Err(problems) => return Ok(shown(&problems)),
        };
        if graph.chunks().is_empty() && matches!(request.what, What::Highstate) {
            cx.job.set_retcode(STATE_FAILURE);
            return Ok(no_states("No states found for this minion"));
        }
        let returns = self.run(&cx, request, &graph, places);
        cx.job.set_retcode(if succeeded(&returns, &graph) { 0 } else { STATE_FAILURE });
        Ok(returns.into())
    }

    fn show(&self, cx: &Cx, request: &StateRequest) -> Result<Value> {
        let cx = self.prepare(cx, request)?;
        let form = request.extra.get("form").map(|form| form.to_str()).unwrap_or_default();
        let errors = pillar_errors(&cx, request);
        if !errors.is_empty() && form != "usage" {
            let item = |error: &String| format!("\n- {}", error.replace('\n', "\n  "));
            let list = errors.iter().map(item).collect::<String>();
            let text = format!("Pillar failed to render. Additional info follows:\n{list}");
            return Err(Error::failed(text));
        }
        if matches!(request.what, What::Top) {
            return self.top(&cx, request);
        }
        let gathered = match self.gather(&cx, request)? {
            Source::High(gathered) => *gathered,
            Source::Low(chunks) => return Ok(Value::list(chunks)),
            Source::Nothing(_) => Gathered::default(),
        };
        // `state.show_sls` tells what is wrong with the form of it, `state.show_highstate` does not.
        if form == "high" || form == "checked" {
            let Gathered { high, mut problems, places } = gathered;
            if form == "checked" {
                problems.extend(halite_highstate::form_problems(&high, &places));
            }
            let data = || Value::from(Dict::from(&high));
            return Ok(if problems.is_empty() { data() } else { shown(&problems) });
        }
        Ok(match self.graph(&cx, gathered, request) {
            Err(problems) => shown(&problems),
            Ok((graph, _)) if form == "dot" => graph.to_dot().into(),
            Ok((graph, _)) => Value::list(graph.chunks()),
        })
    }
}

/// Tells whether this is a daemon of a minion, whose pillar is of some time ago: states are applied
/// with what the pillar says now. `salt-call` has just compiled it.
fn lives_on(cx: &Cx) -> bool {
    let text = |name: &str| cx.opt_str(name).unwrap_or_default();
    text("__role") == "minion" && text("__cli") != "salt-call"
}

/// The return code of a run in which a state failed.
const STATE_FAILURE: i64 = 2;

/// Tells whether a run succeeded: every failed state has an `onfail` that dealt with it.
fn succeeded(returns: &Dict, graph: &Graph) -> bool {
    let failed = |ret: &Value| ret.get("result") == Some(Value::Bool(false));
    !returns.is_empty()
        && returns.into_iter().all(|(tag, ret)| {
            !failed(&ret)
                || graph.onfail_of(&tag.to_str()).iter().any(|handler| {
                    returns.get(handler.as_str()).is_some_and(|ret| {
                        ret.get("result") == Some(Value::Bool(true))
                            && ret.get("__state_ran__") != Some(Value::Bool(false))
                    })
                })
        })
}

/// What a request leads to.
enum Source {
    High(Box<Gathered>),
    Low(Vec<Dict>),
    /// Nothing to run, and why.
    Nothing(String),
}

impl Engine {
    /// Applies the request's environment, test flag and pillar to the context.
    fn prepare(&self, cx: &Cx, request: &StateRequest) -> Result<Cx> {
        let opts = cx.opts.shallow_copy();
        if let Some(test) = request.test {
            opts.insert("test", test);
        }
        if let Some(env) = &request.saltenv {
            opts.insert("saltenv", env);
        }
        if let Some(env) = &request.pillarenv {
            opts.insert("pillarenv", env);
        }
        let mut cx = Cx { opts, ..cx.clone() };
        if !matches!(request.what, What::Low(_)) {
            adopt(&cx);
        }
        if request.pillar.is_some() || request.pillarenv.is_some() || lives_on(&cx) {
            let overrides = request.pillar.clone().unwrap_or_default();
            let pillar =
                self.parts.sources.pillar(&cx, &overrides, request.pillarenv.as_deref())?;
            cx.pillar = pillar;
        }
        // As for every option a pillar may say it too.
        if request.test.is_none() && cx.pillar.get("test") == Some(true.into()) {
            cx.opts.insert("test", true);
        }
        Ok(cx)
    }

    fn gather(&self, cx: &Cx, request: &StateRequest) -> Result<Source> {
        let env = cx.saltenv();
        let mut gathered = match &request.what {
            What::Highstate => match self.top_matches(cx, request)? {
                Top::Matches(matches, named) => {
                    halite_highstate::gather_named(cx, &matches, &named)
                }
                Top::Nothing(comment) => return Ok(Source::Nothing(comment)),
                Top::Problems(problems) => Gathered { problems, ..Gathered::default() },
            },
            What::Sls(mods) => halite_highstate::gather(cx, &[(env, mods.clone())]),
            What::SlsId { mods, .. } => halite_highstate::gather(cx, &[(env, mods.clone())]),
            What::High(Value::Dict(high)) => Gathered { high: high.into(), ..Gathered::default() },
            What::High(_) => Gathered {
                problems: vec![Problem::new("High data is not a dictionary and is invalid")],
                ..Gathered::default()
            },
            What::Low(low) => {
                let chunks = low.items_of_sequence().unwrap_or_else(|| vec![low.clone()]);
                let chunks = chunks.iter().filter_map(|chunk| chunk.as_dict().cloned());
                return Ok(Source::Low(chunks.collect()));
            }
            What::TemplateText { text, path } => self.template(cx, text, path.as_deref())?,
            What::Top => Gathered::default(),
        };
        add_excludes(&mut gathered.high, &request.exclude);
        Ok(Source::High(Box::new(gathered)))
    }

    /// A single SLS given as text: includes and extends have no meaning there.
    fn template(&self, cx: &Cx, text: &str, path: Option<&str>) -> Result<Gathered> {
        let template = Template {
            engine: cx.opt_str("renderer").map_or_else(|| "jinja|yaml".into(), Into::into),
            text: text.to_owned(),
            source: None,
            saltenv: cx.saltenv(),
            sls: Some(path.unwrap_or_default().to_owned()),
            context: Dict::new(),
        };
        let value = cx.runtime.compile(cx, &template)?;
        let Value::Dict(high) = value else {
            let mut gathered = Gathered::default();
            if value.truthy() {
                let name = path.map_or_else(
                    || "Template <template-str>".to_owned(),
                    |path| format!("SLS {path}"),
                );
                let text = format!("{name} does not render to a dictionary");
                gathered.problems.push(Problem::new(text));
            }
            return Ok(gathered);
        };
        let mut gathered = Gathered::of_template(&high, path);
        for word in ["include", "exclude", "extends"] {
            if high.contains(word) {
                gathered.problems.push(Problem::new(format!(
                    "The '{word}' declaration found on '<template-str>' is invalid when rendering \
                     single templates"
                )));
            }
        }
        Ok(gathered)
    }

    fn graph(
        &self,
        cx: &Cx,
        gathered: Gathered,
        request: &StateRequest,
    ) -> Result<(Graph, Places), Vec<Problem>> {
        let Gathered { high, mut problems, places } = gathered;
        let is_shown_low = request.extra.get("form").is_some_and(|form| form == "low");
        let low_only = matches!(request.what, What::Sls(_)) && is_shown_low;
        if !problems.is_empty() {
            // `state.show_low_sls` goes on to look at the form, `state.show_lowstate` at what its
            // parts do to each other; a run does not.
            if low_only {
                problems.extend(halite_highstate::form_problems(&high, &places));
            } else if is_shown_low {
                let settings = settings(cx, request);
                problems.extend(halite_highstate::folded_problems(high, &places, &settings));
            }
            return Err(problems);
        }
        let settings = settings(cx, request);
        let states = &*self.parts.states;
        let compile = match request.what {
            _ if low_only => halite_highstate::compile_unfolded,
            _ => halite_highstate::compile_high,
        };
        let mut graph = compile(high, &places, states, &settings)?;
        let What::SlsId { ids, mods } = &request.what else { return Ok((graph, places)) };
        let wanted = |low: &Dict| {
            low.get("__id__").is_some_and(|own| ids.iter().any(|id| own == *id.as_str()))
        };
        let known: Vec<String> =
            graph.chunks().iter().filter_map(|low| Some(low.get("__id__")?.to_string())).collect();
        if !graph.keep_only(wanted) {
            let text = format!(
                "No matches for ID '{}' found in SLS '{}' within saltenv '{}'",
                ids.join(", "),
                mods.join(", "),
                cx.saltenv()
            );
            let missing = ids.iter().find(|id| !known.contains(id));
            let near =
                missing.and_then(|id| suggest::nearest(id, known.iter().map(String::as_str)));
            if let Some(near) = near {
                tracing::warn!("there is no such id; did you mean `{near}`?");
            }
            return Err(vec![Problem::new(text)]);
        }
        Ok((graph, places))
    }

    fn run(&self, cx: &Cx, request: &StateRequest, graph: &Graph, places: Places) -> Dict {
        let asked = request.extra.get("state_events").or_else(|| cx.opt("state_events"));
        let events = asked.is_some_and(|on| on.truthy())
            && cx.opt_str("file_client").as_deref() != Some("local");
        let strict =
            cx.opt("halite").and_then(|own| own.get("strict")).is_some_and(|on| on.truthy());
        let options = RunOptions {
            test: cx.opt_bool("test"),
            failhard: request.failhard.unwrap_or_else(|| cx.opt_bool("failhard")),
            events,
            max_parallel: cx
                .opt("state_max_parallel")
                .and_then(|max| max.to_int())
                .and_then(|max| usize::try_from(max).ok())
                // Salt's default, 0, is no limit.
                .filter(|max| *max > 0),
            mock: request.extra.get("mock").is_some_and(|mock| mock.truthy()),
            strict,
            keeps_parts: matches!(request.what, What::Low(_)),
            journal: request.journal.clone(),
        };
        Run::new(cx, graph, places, Arc::clone(&self.parts.states), options).run()
    }

    fn run_low(&self, cx: &Cx, request: &StateRequest, chunks: &[Dict]) -> Value {
        // Without a file to run, this is looked at before anything else.
        let is_wrong = |low: &&Dict| low.contains("umask") && umask(low).is_none();
        let wrong: Vec<Problem> = chunks
            .iter()
            .filter(is_wrong)
            .filter_map(|low| low.get("umask"))
            .map(|umask| Problem::new(format!("Invalid umask: {umask}")))
            .collect();
        if !wrong.is_empty() {
            return shown(&wrong);
        }
        let mut graph = Graph::of_chunks(chunks);
        let places = Places::default();
        let settings = settings(cx, request);
        match graph.order(&*self.parts.states, &places, &settings) {
            Err(problems) => shown(&problems),
            Ok(()) => {
                // States see what was given (`__low__`), not how it was ordered here.
                if !chunks.iter().any(|low| low.contains("order")) {
                    for low in graph.chunks() {
                        low.remove("order");
                    }
                }
                let returns = self.run(cx, request, &graph, places);
                cx.job.set_retcode(if succeeded(&returns, &graph) { 0 } else { STATE_FAILURE });
                returns.into()
            }
        }
    }

    /// Renders the top files of every environment, with what they include.
    fn tops(&self, cx: &Cx) -> Result<top::Tops, Vec<Problem>> {
        let name = cx.opt_str("state_top").unwrap_or_else(|| "top.sls".into());
        let name = name.strip_prefix("salt://").unwrap_or(&name).to_owned();
        let mut problems = Vec::new();
        let mut tops = Vec::new();
        let only = cx.opt_str("state_top_saltenv");
        for env in self.environments(cx) {
            let from = only.as_ref().map_or(env.as_str(), SmolStr::as_str);
            if only.is_some() && env != from {
                continue;
            }
            let mut files = Vec::new();
            let mut wanted = vec![name.clone()];
            let mut seen: Vec<String> = Vec::new();
            while let Some(path) = wanted.pop() {
                if seen.contains(&path) {
                    continue;
                }
                seen.push(path.clone());
                match self.render_top(cx, &path, &env) {
                    Ok(Some(top)) => {
                        for odd in top::oddities(&top, &path, false) {
                            tracing::error!("{odd}");
                        }
                        wanted.extend(
                            top::take_includes(&top)
                                .iter()
                                .map(|sls| format!("{}.sls", sls.replace('.', "/"))),
                        );
                        files.push(top);
                    }
                    Ok(None) => {}
                    Err(problem) => {
                        tracing::error!("{problem}");
                        problems.push(problem);
                    }
                }
            }
            tops.push((SmolStr::from(env), files));
        }
        if problems.is_empty() { Ok(tops) } else { Err(problems) }
    }

    fn render_top(&self, cx: &Cx, path: &str, env: &str) -> Result<Option<Value>, Problem> {
        let problem = |error: halite_spec::Error| {
            let problem = Problem::new(format!("Unable to render top file: {error}"));
            match &error {
                halite_spec::Error::Source { place, help, .. } => {
                    let problem = problem.at(place.as_ref());
                    help.iter().fold(problem, |problem, help| problem.help(help.clone()))
                }
                _ => problem,
            }
        };
        let Some(file) = cx.files.cache(&format!("salt://{path}"), env).map_err(problem)? else {
            return Ok(None);
        };
        let content = cx.host.read(&file).map_err(|error| problem(error.into()))?;
        let text = utf8(content).map_err(|error| problem(error.in_file(path)))?;
        let template = Template {
            engine: cx.opt_str("renderer").map_or_else(|| "jinja|yaml".into(), Into::into),
            text,
            source: Some(path.to_owned()),
            saltenv: env.to_owned(),
            sls: Some(String::new()),
            context: Dict::new(),
        };
        let value = cx.runtime.compile(cx, &template).map_err(problem)?;
        Ok(Some(value).filter(Value::truthy))
    }

    fn environments(&self, cx: &Cx) -> Vec<String> {
        let texts = |value: Option<Value>| -> Vec<String> {
            let items = value.and_then(|value| value.items_of_sequence()).unwrap_or_default();
            items.iter().map(Value::to_string).collect()
        };
        let roots = match cx.opt("file_roots") {
            Some(Value::Dict(roots)) => roots.keys().iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        let served = cx.files.envs().unwrap_or_default();
        top::environments(&texts(cx.opt("env_order")), &roots, &served)
    }

    fn merged_top(&self, cx: &Cx) -> Result<Dict, Vec<Problem>> {
        let tops = self.tops(cx)?;
        let strategy = cx.opt_str("top_file_merging_strategy").unwrap_or_else(|| "merge".into());
        let strategy = top::Strategy::named(&strategy).unwrap_or_default();
        let default_top = cx.opt_str("default_top");
        top::merge_states(&tops, strategy, default_top.as_deref())
            .map_err(|error| vec![Problem::new(format!("Unable to render top file: {error}"))])
    }

    fn matches_of(&self, cx: &Cx, merged: &Dict, request: &StateRequest) -> Dict {
        let groups = matching::nodegroups(cx);
        let envs = cx.files.envs().unwrap_or_default();
        let env = request.saltenv.as_deref();
        let custom = |kind: &str, target: &Value| self.custom_match(cx, kind, target, None);
        let matches = matching::with_minion(cx, |minion| {
            let custom: Option<&top::Matcher<'_>> = Some(&custom);
            let mut told = |target: &Value, error: halite_target::Error| {
                let place = top::place_of_mistake(merged, target, &error);
                let place = place.map(|place| format!("\n  --> {place}")).unwrap_or_default();
                tracing::error!(
                    "the top file's target {target} cannot be understood: {error}{place}"
                );
            };
            let nodegroups = groups.as_ref();
            let mut matching =
                top::Matching { env, minion, nodegroups, custom, on_error: &mut told };
            top::state_matches(merged, &envs, &mut matching)
        });
        let extra = match cx.files.master_tops() {
            Ok(Value::Dict(extra)) if !extra.is_empty() => extra,
            _ => self.own_tops(cx),
        };
        top::add_master_tops(&matches, &extra, cx.opt_bool("master_tops_first"));
        matches
    }

    /// What `master_tops` gives a minion that is its own master.
    fn own_tops(&self, cx: &Cx) -> Dict {
        if cx.opt_str("file_client").as_deref() != Some("local") {
            return Dict::new();
        }
        self.given_tops(cx, &cx.opts)
    }

    fn top_matches(&self, cx: &Cx, request: &StateRequest) -> Result<Top> {
        let merged = match self.merged_top(cx) {
            Ok(merged) => merged,
            Err(problems) => {
                let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
                return Ok(Top::Nothing(texts.join("\n")));
            }
        };
        let wrong = top::verify(&Value::Dict(merged.clone()));
        if !wrong.is_empty() {
            return Ok(Top::Problems(wrong.into_iter().map(Problem::new).collect()));
        }
        let matches = self.matches_of(cx, &merged, request);
        let wanted: Vec<(String, Vec<String>)> = matches
            .into_iter()
            .map(|(env, sls)| {
                let sls = sls.items_of_sequence().unwrap_or_default();
                (env.to_string(), sls.iter().map(Value::to_string).collect())
            })
            .collect();
        if wanted.is_empty() {
            return Ok(Top::Nothing(
                "No Top file or master_tops data matches found. Please see master log for details."
                    .into(),
            ));
        }
        let wanted = match request.extra.get("whitelist") {
            Some(list) => whitelisted(wanted, &list),
            None => wanted,
        };
        Ok(Top::Matches(wanted, named(&merged)))
    }

    fn top(&self, cx: &Cx, request: &StateRequest) -> Result<Value> {
        // What kept it from rendering is in the log, as in Salt.
        let Ok(merged) = self.merged_top(cx) else { return Ok(Value::dict()) };
        let wrong = top::verify(&Value::Dict(merged.clone()));
        if !wrong.is_empty() {
            return Ok(Value::list(wrong));
        }
        Ok(self.matches_of(cx, &merged, request).into())
    }
}

/// What the top file says for this minion.
enum Top {
    Matches(Vec<(String, Vec<String>)>, halite_highstate::Named),
    Nothing(String),
    Problems(Vec<Problem>),
}

fn whitelisted(matches: Vec<(String, Vec<String>)>, list: &Value) -> Vec<(String, Vec<String>)> {
    let wanted: Vec<String> = match list {
        Value::Str(text) => text.split(',').map(str::to_owned).collect(),
        other => {
            other.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
        }
    };
    let kept = matches.into_iter().filter_map(|(env, sls)| {
        let sls: Vec<String> = sls.into_iter().filter(|sls| wanted.contains(sls)).collect();
        (!sls.is_empty()).then_some((env, sls))
    });
    kept.collect()
}

/// What is the master's alone to say: groups are its own, and a top file means the same to all.
const SAID_BY_THE_MASTER: [&str; 7] = [
    "failhard",
    "nodegroups",
    "top_file_merging_strategy",
    "env_order",
    "default_top",
    "state_auto_order",
    "state_aggregate",
];

/// Takes over what the master says about all state runs.
fn adopt(cx: &Cx) {
    if cx.opt_str("file_client").as_deref() == Some("local") {
        return;
    }
    let said = match cx.files.master_opts() {
        Ok(Value::Dict(said)) => said,
        Ok(_) => return,
        Err(error) => {
            tracing::debug!("the master's options are not known: {error}");
            return;
        }
    };
    // `state.top` names a file of its own, by its address.
    if !cx.opt_str("state_top").is_some_and(|own| own.starts_with("salt://")) {
        for name in ["state_top", "state_top_saltenv"] {
            if let Some(value) = said.get(name).filter(Value::truthy) {
                cx.opts.insert(name, value);
            }
        }
    }
    if said.get("state_events").is_some_and(|on| on.truthy()) {
        cx.opts.insert("state_events", true);
    }
    for name in SAID_BY_THE_MASTER {
        if let Some(value) = said.get(name).filter(|value| !value.is_null()) {
            cx.opts.insert(name, value);
        }
    }
}

fn settings(cx: &Cx, request: &StateRequest) -> Settings {
    let texts = |value: Option<Value>| -> Vec<String> {
        match value {
            Some(Value::Str(one)) => vec![one.into()],
            Some(list) => {
                list.items_of_sequence().unwrap_or_default().iter().map(Value::to_string).collect()
            }
            None => Vec::new(),
        }
    };
    Settings {
        disabled_requisites: texts(cx.opt("disabled_requisites")),
        aggregate: cx.opt("state_aggregate").unwrap_or_default(),
        disabled_states: texts(cx.grains.get("state_runs_disabled")),
        orchestration_jid: request.extra.get("orchestration_jid"),
    }
}

fn add_excludes(high: &mut High, exclude: &Value) {
    let items = match exclude {
        Value::Null => return,
        Value::Str(text) => text.split(',').map(Value::from).collect::<Vec<_>>(),
        other => other.items_of_sequence().unwrap_or_default(),
    };
    if !items.is_empty() {
        high.exclude(items);
    }
}

/// What kept the pillar from rendering, unless the request goes on without it.
fn pillar_errors(cx: &Cx, request: &StateRequest) -> Vec<String> {
    if request.extra.get("force").is_some_and(|force| force.truthy()) {
        return Vec::new();
    }
    let errors = cx.pillar.get("_errors").and_then(|errors| errors.items_of_sequence());
    errors.unwrap_or_default().iter().map(Value::to_string).collect()
}

fn shown(problems: &[Problem]) -> Value {
    Value::list(problems.iter().map(ToString::to_string))
}

/// Where the top file names each SLS.
fn named(top: &Dict) -> halite_highstate::Named {
    let mut named = halite_highstate::Named::new();
    for (env, targets) in top {
        let Value::Dict(targets) = targets else { continue };
        for list in targets.values() {
            let Value::List(list) = list else { continue };
            for (index, sls) in list.into_iter().enumerate() {
                if let (Some(sls), Some(place)) = (sls.as_str(), list.place_of(index)) {
                    named.entry((env.to_string(), sls.to_owned())).or_insert(place.clone());
                }
            }
        }
    }
    named
}

fn no_states(comment: &str) -> Value {
    let ret = entries! {
        "result" => false, "comment" => comment, "name" => "No States",
        "changes" => Value::dict(), "__run_num__" => 0,
    };
    dict! { "no_|-states_|-states_|-None" => ret }
}
