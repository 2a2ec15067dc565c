//! Pillars against what genuine Salt 3008 compiled (`record.py` wrote `cases.json`).

use std::{fs, path::Path, sync::Arc};

use halite_host::Os;
use halite_pillar::{Compiler, Input, Renderer, Request, Source, pipe, unchanged};
use halite_renderers::Renderers;
use halite_spec::Result;
use halite_value::{Dict, Value, dict, json};

/// Data files only: what templates do is tested where they are made.
struct Yaml;

impl Renderer for Yaml {
    fn render(&self, source: &Source<'_>) -> Result<Value> {
        pipe::render(&Renderers::new(), &Source { renderer: "yaml", ..*source })
    }
}

fn put(tree: &Dict, root: &Path) {
    for (path, text) in tree {
        let full = root.join(path.as_str().expect("a path"));
        fs::create_dir_all(full.parent().expect("a parent")).expect("made");
        fs::write(full, text.as_str().expect("text")).expect("written");
    }
}

fn request(case: &Value) -> Request {
    let text = |name: &str| case.get_str(name).map(|text| text.to_string());
    let part = |name: &str| case.get(name).and_then(|part| part.as_dict().cloned());
    let opts = dict! { "renderer" => "jinja|yaml", "state_top" => "top.sls",
    "pillar_roots" => json::from_str(r#"{"base": ["ROOT/pillar"]}"#).expect("JSON") };
    let opts = opts.as_dict().expect("dict").clone();
    opts.update(&part("opts").unwrap_or_default());
    let grains = json::from_str(r#"{"os": "Debian", "id": "web1", "ipv4": ["10.0.0.5"]}"#);
    Request {
        opts,
        minion_id: text("id").unwrap_or_else(|| "web1".into()),
        grains: part("grains")
            .unwrap_or_else(|| grains.expect("JSON").as_dict().expect("dict").clone()),
        saltenv: text("saltenv"),
        pillarenv: text("pillarenv"),
        pillar_override: part("override").unwrap_or_default(),
        ..Request::default()
    }
}

/// Compiles a case in a scratch folder; `ROOT` in its options stands for that.
fn compiled(case: &Value, renderer: Arc<dyn Renderer>) -> Value {
    let scratch = tempfile::tempdir().expect("a folder");
    let root = scratch.path().to_string_lossy().into_owned();
    put(case.get("tree").expect("a tree").as_dict().expect("dict"), scratch.path());
    let mut request = request(case);
    let opts = json::to_string(&Value::from(&request.opts)).expect("JSON");
    let opts = json::from_str(&opts.replace("ROOT/", &format!("{root}/"))).expect("JSON");
    request.opts = opts.as_dict().expect("dict").clone();
    let compiled = Compiler::new(Arc::new(Os::new()), renderer).compile(&request);
    let text = json::to_string(&compiled.pillar.into()).expect("JSON");
    json::from_str(&text.replace(&root, "ROOT")).expect("JSON")
}

#[test]
fn genuine_answers() {
    let cases = json::from_str(include_str!("cases.json")).expect("JSON");
    let cases = cases.as_dict().expect("dict").entries();
    assert!(cases.len() > 70);
    let mut wrong = Vec::new();
    for (name, case) in cases {
        if case.get("jinja").is_some() {
            continue;
        }
        let (own, expected) =
            (compiled(&case, Arc::new(Yaml)), case.get("expected").expect("recorded"));
        if own != expected {
            wrong.push(format!("{name}: {own:?}\n  genuine {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn unchanged_inputs_are_recognised() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = |name: &str| scratch.path().join(name);
    let tree = dict! { "top.sls" => "base: {'*': [a, later]}\n", "a.sls" => "x: 1\n" };
    put(tree.as_dict().expect("dict"), scratch.path());
    let roots = dict! { "base" => Value::list([scratch.path().to_string_lossy().into_owned()]) };
    let opts = dict! { "pillar_roots" => roots };
    let request = Request {
        opts: opts.as_dict().expect("dict").clone(),
        minion_id: "m".into(),
        ..Request::default()
    };
    let host = Os::new();
    let compile = || Compiler::new(Arc::new(Os::new()), Arc::new(Yaml)).compile(&request);
    let first = compile();
    assert!(unchanged(&first.inputs, &host));
    assert!(first.inputs.iter().any(|input| matches!(input, Input::File { hash: None, .. })));
    fs::write(path("a.sls"), "x: 2\n").expect("written");
    assert!(!unchanged(&first.inputs, &host), "a file changed");
    let second = compile();
    fs::write(path("later.sls"), "y: 1\n").expect("written");
    assert!(!unchanged(&second.inputs, &host), "what was missing came");
    let third = compile();
    assert_eq!(third.pillar.get("y"), Some(1.into()));
    assert!(unchanged(&third.inputs, &host));
    fs::create_dir(path("sub")).expect("made");
    assert!(unchanged(&third.inputs, &host), "an empty folder is nothing");
    fs::write(path("sub/new.sls"), "").expect("written");
    assert!(!unchanged(&third.inputs, &host), "wildcards may match it");
}

#[test]
fn a_line_of_the_top_that_cannot_be_matched_is_an_error() {
    let compiled = |line: &str| {
        let scratch = tempfile::tempdir().expect("a folder");
        fs::write(scratch.path().join("a.sls"), "a: 1\n").expect("written");
        let top = format!("base:\n  '*': [a]\n  {line}\n");
        fs::write(scratch.path().join("top.sls"), top).expect("written");
        let roots = dict! { "base" => Value::list([scratch.path().to_string_lossy().as_ref()]) };
        let opts = dict! { "state_top" => "top.sls", "pillar_roots" => roots };
        let opts = opts.as_dict().expect("dict").clone();
        let request = Request { opts, minion_id: "m".into(), ..Request::default() };
        Compiler::new(Arc::new(Os::new()), Arc::new(Yaml)).compile(&request)
    };
    let unknown = compiled("'x': [a, {match: nosuch}]");
    assert_eq!(unknown.errors.len(), 1, "{:?}", unknown.errors);
    assert!(unknown.pillar.get("_errors").is_some());
    let other = compiled("'x': [a, {match: list}]");
    assert!(other.errors.is_empty(), "{:?}", other.errors);
}

#[test]
fn external_sources_are_never_unchanged() {
    let opts = dict! { "ext_pillar" => Value::list([dict! { "cmd_yaml" => "echo 'a: 1'" }]) };
    let request = Request {
        opts: opts.as_dict().expect("dict").clone(),
        minion_id: "m".into(),
        ..Request::default()
    };
    let compiled = Compiler::new(Arc::new(Os::new()), Arc::new(Yaml)).compile(&request);
    assert_eq!(compiled.pillar.get("a"), Some(1.into()));
    assert!(!unchanged(&compiled.inputs, &Os::new()));
}

#[test]
fn hostile_ids_and_names_stay_inside() {
    let command = dict! { "cmd_yaml" => "echo 'id: %s'" };
    let opts = dict! { "ext_pillar" => Value::list([command]) };
    let request = Request {
        opts: opts.as_dict().expect("dict").clone(),
        minion_id: "x'; echo 'evil: 1".into(),
        ..Request::default()
    };
    let compiled = Compiler::new(Arc::new(Os::new()), Arc::new(Yaml)).compile(&request);
    assert_eq!(compiled.pillar.get("evil"), None);
    assert_eq!(compiled.errors.len(), 1, "{:?}", compiled.errors);
}
