//! What an embedding program gets: every name, its own functions, places, hints and the line map.

use std::sync::Arc;

use halite_renderers::jinja::*;
use halite_value::{Dict, Value, dict, entries, json};

fn render(template: &str, context: &Dict) -> Result<Rendered, Error> {
    Environment::new().render_salt(template, context, &NoLoader)
}

fn failure(template: &str, context: &Dict) -> Error {
    render(template, context).map(|rendered| rendered.text).expect_err("must fail")
}

#[test]
fn every_name_of_genuine_salt_is_there() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/spec/jinja_names.json");
    let names =
        json::from_str(&std::fs::read_to_string(path).expect("recorded names")).expect("JSON");
    for (kind, test) in
        [("filters", "is filter"), ("tests", "is test"), ("globals", "in show_full_context()")]
    {
        let Some(Value::List(list)) = names.get(kind) else { panic!("no {kind}") };
        let template = format!(
            "{{% for n in names %}}{{% if not n {test} %}}{{{{ n }}}} {{% endif %}}{{% endfor %}}"
        );
        let missing = render(&template, &entries! { "names" => list }).expect("renders").text;
        assert_eq!(missing, "", "missing {kind}");
    }
}

fn check_hint(template: &str, context: &Dict, hint: &str, subject: &Subject) {
    let error = failure(template, context);
    assert_eq!(error.suggestion(), Some(hint), "{template}: {error}");
    assert_eq!(error.subject(), Some(subject), "{template}");
}

#[test]
fn slips_get_a_hint() {
    let context = entries! { "pillar" => dict! { "packages" => 1 }, "grains" => dict! { "os_family" => "x" } };
    check_hint("{{ piller }}", &context, "pillar", &Subject::Name("piller".into()));
    let key = |key: &str| Subject::Key { of: "dict object".into(), key: key.into() };
    check_hint("{{ pillar.pakages }}", &context, "packages", &key("pakages"));
    check_hint("{{ grains['os_famliy'] | upper }}", &context, "os_family", &key("os_famliy"));
    check_hint("{{ grains.os_famly | md5 }}", &context, "os_family", &key("os_famly"));
    check_hint("{{ 1 | deafult(2) }}", &context, "default", &Subject::Filter("deafult".into()));
    check_hint(
        "{% if 1 is defned %}{% endif %}",
        &context,
        "defined",
        &Subject::Test("defned".into()),
    );
    let tag = Subject::Tag("endofr".into());
    check_hint("{% for a in [1] %}{% endofr %}", &context, "endfor", &tag);
    let name = |name: &str| Subject::Name(name.into());
    let looped = "{% for package in [1] %}{{ pakcage }}{% endfor %}";
    check_hint(looped, &context, "package", &name("pakcage"));
    let in_macro = "{% macro m(username) %}{{ usrename }}{% endmacro %}{{ m(1) }}";
    check_hint(in_macro, &context, "username", &name("usrename"));
    // `pillar` is no further off, but the author wrote the other.
    let own = "{% macro m() %}{% set miller = 1 %}{{ piller }}{% endmacro %}{{ m() }}";
    check_hint(own, &context, "miller", &name("piller"));
    check_hint("{{ null }}", &context, "none", &name("null"));
    let method = |of: &str, key: &str| Subject::Key { of: of.into(), key: key.into() };
    check_hint("{{ 'a'.uper() }}", &context, "upper", &method("str object", "uper"));
    check_hint("{% do [].apend(1) %}", &context, "append", &method("list object", "apend"));
    check_hint("{{ pillar.updat({}) }}", &context, "update", &key("updat"));
    check_hint("{{ pillar.iteritems() }}", &context, "items", &key("iteritems"));
    let index = Subject::Key { of: "jinja2.runtime.LoopContext object".into(), key: "indx".into() };
    check_hint("{% for a in [1] %}{{ loop.indx }}{% endfor %}", &context, "index", &index);
    let site = "{% macro site(name) %}{% endmacro %}{{ site(nmae=1) }}";
    check_hint(site, &context, "name", &Subject::Name("nmae".into()));
}

#[test]
fn habits_of_other_languages_get_a_note() {
    let context = entries! { "pillar" => dict! { "a" => 1 } };
    for (template, note) in [
        ("{% if pillar.a = 1 %}{% endif %}", "`==` compares"),
        ("{% if 1 && 2 %}{% endif %}", "`and` joins"),
        ("{% if 1 %}{% else if 2 %}{% endif %}", "`elif`"),
        ("{{ pillar[\u{201c}a\u{201d}] }}", "typographic"),
        ("{% for k in pillar.items %}{% endfor %}", "`items()`"),
        ("{{ pillar.has_key('a') }}", "`key in dict`"),
    ] {
        let error = failure(template, &context);
        assert!(error.note().is_some_and(|own| own.contains(note)), "{template}: {error}");
    }
}

struct Tree;

impl Files for Tree {
    fn read(&self, path: &str) -> Result<Option<Source>, Error> {
        let text = match path {
            "lib.jinja" => "{% macro m(x) %}\n\n{{ x.y.z }}\n{% endmacro %}",
            "part.sls" => "p: 1\nq: 2\n",
            _ => return Ok(None),
        };
        Ok(Some(Source { text: text.into(), file: Some(format!("/srv/{path}").into()) }))
    }
}

#[test]
fn an_error_tells_the_way_it_came() {
    let loader = SaltLoader { files: Tree, local: false };
    let template = "a\n{% from 'lib.jinja' import m %}\n{% macro n() %}\n{{ m({}) }}\n{% endmacro %}\n{{ n() }}";
    let error =
        Environment::new().render_salt(template, &Dict::new(), &loader).expect_err("must fail");
    let way: Vec<_> = error
        .spots()
        .iter()
        .map(|spot| (spot.file.as_deref().map(ToOwned::to_owned), spot.line, spot.within.clone()))
        .collect();
    assert_eq!(
        way,
        [
            (Some("/srv/lib.jinja".to_owned()), 3, Within::Macro("m".into())),
            (None, 4, Within::Macro("n".into())),
            (None, 6, Within::Template),
        ]
    );
}

#[test]
fn lines_of_the_output_are_found_in_their_templates() {
    let loader = SaltLoader { files: Tree, local: false };
    let template = "{% set l = [1, 2] %}\nx:\n{%- for i in l %}\n  - {{ i }}\n{%- endfor %}\n{% include 'part.sls' %}\nend: 1\n";
    let rendered =
        Environment::new().render_salt(template, &Dict::new(), &loader).expect("renders");
    let lines: Vec<&str> = rendered.text.lines().collect();
    assert_eq!(lines, ["", "x:", "  - 1", "  - 2", "p: 1", "q: 2", "end: 1"]);
    let found: Vec<_> = (2..=7)
        .map(|line| rendered.lines.source_of(line).map(|(file, line)| (file.is_some(), line)))
        .collect();
    let expected = [(false, 2), (false, 4), (false, 4), (true, 1), (true, 2), (false, 7)];
    assert_eq!(found, expected.map(Some));
}

#[test]
fn programs_add_filters_tests_and_globals() {
    let twice: Arc<dyn Callable> = Arc::new(|args: Args| {
        let mut args = Signature::new("twice(value, sep=)").bind(args)?;
        let (text, separator) =
            (args.take(0).to_str(), args.opt(1).map(|sep| sep.to_str()).unwrap_or_default());
        Ok(Value::from(format!("{text}{separator}{text}")))
    });
    let short: Arc<dyn Callable> =
        Arc::new(|args: Args| Ok(Value::Bool(args.positional[0].to_str().len() < 3)));
    let env = Environment::new()
        .with_filter("twice", twice)
        .with_test("short", short)
        .with_global("answer", Value::Int(42));
    let template = "{{ 'ab' | twice }} {{ ('<' | e) | twice(sep='-') }} {{ ['x'] | map('twice') | list }} {{ 'ab' is \
                    short }} {{ ['a', 'abc'] | select('short') | list }} {{ answer }}";
    let text = env.render(template, &Dict::new(), &NoLoader).expect("renders").text;
    assert_eq!(text, "abab &lt;-&lt; ['xx'] True ['a'] 42");
    let error =
        env.render("{{ 1 | twice(2, 3) }}", &Dict::new(), &NoLoader).expect_err("must fail");
    assert_eq!(error.message(), "twice() takes from 1 to 2 positional arguments but 3 were given");
}

#[test]
fn a_filter_that_needs_the_machine_says_so() {
    let error = failure("{{ 'ls' | which }}", &Dict::new());
    assert!(error.message().contains("'which' needs the machine"), "{error}");
}

#[test]
fn environments_are_shared_between_threads() {
    let env = Environment::new();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let env = &env;
            scope.spawn(move || {
                for _ in 0..50 {
                    let context = entries! { "n" => n };
                    let text = env
                        .render(
                            "{% macro m(x) %}{{ x * n }}{% endmacro %}{{ m(2) }}",
                            &context,
                            &NoLoader,
                        )
                        .expect("renders")
                        .text;
                    assert_eq!(text, (2 * n).to_string());
                }
            });
        }
    });
}

/// Macros hold the context they were made in, and the context holds them.
#[test]
fn nothing_stays_behind_after_a_rendering() {
    struct One(&'static str);
    impl Files for One {
        fn read(&self, path: &str) -> Result<Option<Source>, Error> {
            let text = (path == "lib.jinja").then(|| Source { text: self.0.into(), file: None });
            Ok(text)
        }
    }
    let lib = "{% set own = seen %}{% macro m(x) %}{{ n(x) }}{{ own }}{% endmacro %}{% macro n(x) %}{{ x }}{% endmacro %}";
    let loader = SaltLoader { files: One(lib), local: true };
    for template in [
        "{% from 'lib.jinja' import m with context %}{{ m(1) }}",
        "{% import 'lib.jinja' as lib with context %}{{ lib.m(1) }}",
        "{% include 'lib.jinja' %}",
        "{% macro a() %}{{ b() }}{{ seen }}{% endmacro %}{% macro b() %}{% endmacro %}{{ a() }}",
        "{% block one scoped %}{% macro a() %}{{ seen }}{% endmacro %}{{ a() }}{% endblock %}",
    ] {
        let witness: Arc<dyn Callable> = Arc::new(|_: Args| Ok(Value::Null));
        let context = Dict::new();
        context.insert("seen", Value::Object(Arc::new(HostFunction(witness.clone()))));
        Environment::new().render(template, &context, &loader).expect("renders");
        drop(context);
        assert_eq!(Arc::strong_count(&witness), 1, "{template}");
    }
}

/// What the renderer `yaml` makes, pillar too, are Python's ordered dicts; literals are not.
#[test]
fn ordered_dicts_keep_their_order() {
    let options = halite_value::yaml::LoadOptions {
        ordered: true,
        ..halite_value::yaml::LoadOptions::default()
    };
    let site = halite_value::yaml::load("{z: 1, a: {y: 1, b: 2}}", &options).expect("YAML");
    let context = entries! { "site" => site };
    let check = |template: &str, expected: &str| {
        assert_eq!(render(template, &context).expect("renders").text, expected, "{template}");
    };
    check("{{ site|yaml }}", "{z: 1, a: {y: 1, b: 2}}");
    check("{{ site.copy()|yaml }}", "{z: 1, a: {y: 1, b: 2}}");
    check("{{ dict(site)|yaml }}", "{a: {y: 1, b: 2}, z: 1}");
    check("{{ {'q': site.a, 'k': 1}|yaml }}", "{k: 1, q: {y: 1, b: 2}}");
    check("{{ site }} {{ [site.a] }}", "{'z': 1, 'a': {'y': 1, 'b': 2}} [{'y': 1, 'b': 2}]");
    check("{{ site.a ~ '' }}", "OrderedDict([('y', 1), ('b', 2)])");
    check("{{ [site.a]|python }}", "[OrderedDict([('y', 1), ('b', 2)])]");
    let message = failure("{{ site.a.nope.x }}", &context).to_string();
    assert!(
        message.contains("'collections.OrderedDict object' has no attribute 'nope'"),
        "{message}"
    );
}
