//! Runs recorded cases: the functions, files and variables that the recorder supplied too.

#![allow(dead_code, reason = "each test program uses a part of this")]

use std::sync::Arc;

use halite_renderers::jinja::*;
use halite_value::{Dict, Value, json, lookup, merge};

/// The files of a case.
pub(crate) struct CaseFiles(Dict);

impl Files for CaseFiles {
    fn read(&self, path: &str) -> Result<Option<Source>, Error> {
        let text = self.0.get(path).as_ref().and_then(|text| text.as_str().map(Arc::<str>::from));
        let file = format!("<cachedir>/files/base/{path}");
        Ok(text.map(|text| Source { text, file: Some(file.into()) }))
    }
}

fn recurse(into: &Value, from: &Value, lists: bool) -> Value {
    merge::merge(into, from, merge::Strategy::Recurse, lists).unwrap_or_else(|_| from.clone())
}

struct Salt(Dict);

impl Lookup for Salt {
    fn item(&self, key: &str) -> Option<Value> {
        self.0.get(key)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        let prefix = format!("{name}.");
        let entries = self.0.entries().into_iter();
        let module: Dict = entries
            .filter_map(|(key, value)| {
                Some((key.as_str()?.strip_prefix(&prefix)?.to_owned(), value))
            })
            .collect();
        (!module.is_empty()).then(|| HostLookup::value(Module(module)))
    }

    fn keys(&self) -> Vec<String> {
        self.0.keys().iter().map(ToString::to_string).collect()
    }
}

/// `salt.test`, whose attributes are the functions.
struct Module(Dict);

impl Lookup for Module {
    fn item(&self, key: &str) -> Option<Value> {
        self.0.get(key)
    }

    fn keys(&self) -> Vec<String> {
        self.0.keys().iter().map(ToString::to_string).collect()
    }
}

fn function(run: impl Fn(Args) -> Result<Value, Error> + Send + Sync + 'static) -> Value {
    HostFunction::value(run)
}

/// The object `salt` of a case.
fn salt(pillar: &Value, grains: &Value) -> Value {
    let functions = Dict::new();
    let data = pillar.clone();
    let get = Signature::new(
        "get(key, default=, merge=, merge_nested_lists=, delimiter=, pillarenv=, saltenv=)",
    );
    functions.insert(
        "pillar.get",
        function(move |args| {
            let mut args = get.bind(args)?;
            let key = args.take(0).to_str();
            let default = args.opt(1).unwrap_or_else(|| Value::str(""));
            let merged = args.take(2).truthy();
            let delimiter = args.opt(4).map_or(":".into(), |delimiter| delimiter.to_str());
            let found = lookup::traverse(&data, &key, &delimiter);
            Ok(match found {
                Some(found) if merged && matches!(default, Value::Dict(_)) => {
                    recurse(&default.deep_copy(), &found, false)
                }
                Some(found) => found,
                None => default,
            })
        }),
    );
    let data = grains.clone();
    let get = Signature::new("get(key, default=, delimiter=, ordered=)");
    functions.insert(
        "grains.get",
        function(move |args| {
            let mut args = get.bind(args)?;
            let key = args.take(0).to_str();
            let default = args.opt(1).unwrap_or_else(|| Value::str(""));
            Ok(lookup::traverse(&data, &key, ":").unwrap_or(default))
        }),
    );
    let data = grains.clone();
    let filter_by = Signature::new("filter_by(lookup_dict, grain=, merge=, default=, base=)");
    functions.insert(
        "grains.filter_by",
        function(move |args| {
            let mut args = filter_by.bind(args)?;
            let table = args.take(0);
            let grain = args.opt(1).map_or("os_family".into(), |grain| grain.to_str());
            let merged = args.take(2);
            let default = args.opt(3).map_or("default".into(), |name| name.to_str());
            let base = args.opt(4);
            let grain = lookup::traverse(&data, &grain, ":").unwrap_or_default().to_str();
            let mut found = table.get(&grain).or_else(|| table.get(&default)).unwrap_or_default();
            if let Some(base) = base.and_then(|base| table.get(&base.to_str())) {
                found = recurse(&base.deep_copy(), &found, false);
            }
            if merged.truthy() {
                found = recurse(&found.deep_copy(), &merged, false);
            }
            Ok(found)
        }),
    );
    let defaults_merge = Signature::new("merge(dest, src, merge_lists=, in_place=, convert_none=)");
    functions.insert(
        "defaults.merge",
        function(move |args| {
            let mut args = defaults_merge.bind(args)?;
            let (target, source) = (args.take(0), args.take(1));
            let lists = args.take(2).truthy();
            let in_place = args.opt(3).is_none_or(|flag| flag.truthy());
            let merged = recurse(&target.deep_copy(), &source, lists);
            if let (true, Value::Dict(target), Value::Dict(merged)) = (in_place, &target, &merged) {
                target.update(merged);
                return Ok(Value::Dict(target.clone()));
            }
            Ok(merged)
        }),
    );
    let echo = Signature::new("echo(text)");
    functions.insert("test.echo", function(move |args| Ok(echo.bind(args)?.take(0))));
    functions.insert(
        "test.dict",
        function(|_| Ok(halite_value::dict! { "a" => 1, "b" => halite_value::list![1, 2] })),
    );
    functions.insert(
        "test.kwargs",
        function(|args| Ok(Value::Dict(args.keyword.into_iter().collect()))),
    );
    functions.insert("test.fail", function(|_| Err(Error::other("CommandExecutionError", "boom"))));
    HostLookup::value(Salt(functions))
}

/// One recorded case.
pub(crate) struct Case(Value);

impl Case {
    pub(crate) fn name(&self) -> String {
        self.0.get_str("name").unwrap_or_default().to_string()
    }

    pub(crate) fn template(&self) -> String {
        self.0.get_str("template").unwrap_or_default().to_string()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.0.get("error_type").is_some()
    }

    /// Renders the template of the case, or another one in its place.
    pub(crate) fn render(&self, env: &Environment, template: &str) -> Result<Rendered, Error> {
        let dict_of = |key: &str| match self.0.get(key) {
            Some(Value::Dict(dict)) => dict,
            _ => Dict::new(),
        };
        let context = dict_of("context").deep_copy();
        let pillar = context.get("pillar").unwrap_or_else(Value::dict);
        let grains = context.get("grains").unwrap_or_else(Value::dict);
        context.insert("salt", salt(&pillar, &grains));
        context.insert("pillar", pillar);
        context.insert("grains", grains);
        context.insert(
            "opts",
            halite_value::dict! { "saltenv" => "base", "file_client" => "local", "id" => "m1" },
        );
        for (name, value) in [
            ("saltenv", "base"),
            ("sls", "case"),
            ("slspath", ""),
            ("slsdotpath", ""),
            ("slscolonpath", ""),
            ("sls_path", ""),
            ("tpldir", "."),
            ("tplfile", "case.sls"),
            ("tpldot", ""),
            ("tplpath", "/srv/case.sls"),
        ] {
            context.insert(name, value);
        }
        let mut env = env.clone();
        for (name, value) in &dict_of("env") {
            env.set_option(&name.to_str(), &value);
        }
        let env =
            env.allow_undefined(self.0.get("allow_undefined").is_some_and(|flag| flag.truthy()));
        let loader = SaltLoader { files: CaseFiles(dict_of("files")), local: true };
        env.render_salt(template, &context, &loader)
    }

    /// Compares with what was recorded; `None` if all is well.
    pub(crate) fn check(&self, env: &Environment) -> Option<String> {
        let outcome = self.render(env, &self.template());
        let wanted = |key: &str| self.0.get(key).unwrap_or_default();
        match outcome {
            Ok(rendered) => {
                let expected = wanted("expected");
                (Value::str(&rendered.text) != expected).then(|| {
                    format!(
                        "expected {}, got {}",
                        expected_text(&self.0),
                        Value::str(&rendered.text).repr()
                    )
                })
            }
            Err(error) => {
                let salt = error.as_salt(Some("case"));
                let got = [
                    ("error_type", Value::from(error.class().name().into_owned())),
                    ("error_message", Value::str(error.message())),
                    ("salt_message", Value::from(salt.message)),
                    ("line", Value::from(salt.line)),
                ];
                let wrong = got.iter().find(|(key, value)| wanted(key) != *value);
                wrong.map(|(key, value)| {
                    format!("expected {}; wrong {key}: {}", expected_text(&self.0), value.repr())
                })
            }
        }
    }
}

fn expected_text(case: &Value) -> String {
    match case.get("expected") {
        Some(expected) => expected.repr(),
        None => {
            let part = |key: &str| case.get(key).unwrap_or_default().repr();
            format!("{} {} line {}", part("error_type"), part("salt_message"), part("line"))
        }
    }
}

/// Reads a file of cases, given from the root of the repository.
pub(crate) fn cases(path: &str) -> Vec<Case> {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let Value::List(list) = json::from_str(&text).expect("the cases are JSON") else {
        panic!("{path} holds no list");
    };
    list.to_vec().into_iter().map(Case).collect()
}
