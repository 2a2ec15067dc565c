//! Pillar from git repositories of this machine. Needs the program `git`.

use std::{path::Path, sync::Arc};

use halite_host::Os;
use halite_pillar::{Compiler, Renderer, Request, Source, pipe};
use halite_renderers::Renderers;
use halite_spec::Result;
use halite_testkit::git::{commit, git};
use halite_value::{Dict, Value, json};

struct Yaml;

impl Renderer for Yaml {
    fn render(&self, source: &Source<'_>) -> Result<Value> {
        pipe::render(&Renderers::new(), &Source { renderer: "yaml", ..*source })
    }
}

/// Two repositories; the first with the branches master, dev and feature/x.
fn repositories(root: &Path) {
    let (one, two) = (root.join("one"), root.join("two"));
    for repo in [&one, &two] {
        std::fs::create_dir_all(repo).expect("made");
        git(repo, &["init", "-q", "-b", "master"]);
    }
    commit(&one, &[("top.sls", "base: {'*': [p]}"), ("p.sls", "{key: one, sub: {a: 1}}")]);
    git(&one, &["checkout", "-q", "-b", "dev"]);
    commit(&one, &[("top.sls", "dev: {'*': [p]}"), ("p.sls", "key: dev")]);
    git(&one, &["checkout", "-q", "-b", "feature/x"]);
    commit(&one, &[("top.sls", "feature/x: {'*': [p]}"), ("p.sls", "key: x")]);
    git(&one, &["checkout", "-q", "master"]);
    let shared = "{include: [p], data: two}";
    commit(&two, &[("top.sls", "base: {'*': [q]}"), ("q.sls", shared)]);
}

#[test]
fn repositories_are_pillar() {
    let scratch = tempfile::tempdir().expect("a folder");
    repositories(scratch.path());
    let address = format!("file://{}/", scratch.path().display());
    let check = |opts: &str, pillarenv: Option<&str>, expected: &str| {
        let opts = json::from_str(&opts.replace("AT/", &address)).expect("JSON");
        let opts: Dict = opts.as_dict().expect("a dict").clone();
        opts.insert("cachedir", scratch.path().join("cache").display().to_string());
        opts.insert("pillar_roots", Dict::new());
        let pillarenv = pillarenv.map(str::to_owned);
        let request = Request { opts, minion_id: "web1".into(), pillarenv, ..Request::default() };
        let done = Compiler::new(Arc::new(Os::new()), Arc::new(Yaml)).compile(&request);
        let shown = json::to_string(&done.pillar.into()).expect("JSON");
        let expected = json::from_str(expected).expect("JSON");
        assert_eq!(
            json::from_str(&shown).expect("JSON"),
            expected,
            "{request:?}",
            request = request.opts
        );
    };
    let one = r#"{"ext_pillar": [{"git": ["master AT/one"]}]}"#;
    check(one, None, r#"{"key": "one", "sub": {"a": 1}}"#);
    check(one, Some("dev"), "{}");
    check(r#"{"ext_pillar": [{"git": ["dev AT/one"]}]}"#, None, r#"{"key": "dev"}"#);
    check(r#"{"ext_pillar": [{"git": ["feature/x AT/one"]}]}"#, None, r#"{"key": "x"}"#);
    let env = r#"{"ext_pillar": [{"git": ["__env__ AT/one"]}]}"#;
    check(env, None, r#"{"key": "one", "sub": {"a": 1}}"#);
    check(env, Some("feature/x"), r#"{"key": "x"}"#);
    check(r#"{"ext_pillar": [{"git": ["nosuch AT/one"]}]}"#, None, "{}");
    // The second includes what the first has.
    let both = r#"{"ext_pillar": [{"git": ["master AT/one", "master AT/two"]}]}"#;
    check(both, None, r#"{"key": "one", "sub": {"a": 1}, "data": "two"}"#);
}
