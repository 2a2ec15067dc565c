//! How fast templates render, in microseconds of CPU time per rendering; compare with genuine Jinja on the same
//! templates (`tests/spec/jinja_speed.py`).

use std::sync::Arc;

use halite_renderers::jinja::{Environment, Error, Files, SaltLoader, Source};
use halite_value::{Dict, dict, list};

struct Tree;

impl Files for Tree {
    fn read(&self, path: &str) -> Result<Option<Source>, Error> {
        let text = match path {
            "f/map.jinja" => MAP,
            "f/lib.jinja" => LIB,
            "f/defaults.yaml" => DEFAULTS,
            _ => return Ok(None),
        };
        Ok(Some(Source { text: Arc::from(text), file: None }))
    }
}

const LOOP: &str = "{% for u in users %}\n{{ u.name }}:\n  user.present:\n    - uid: {{ u.uid + 1000 }}\n{%- if u.uid % 2 == 0 \
                    %}\n    - groups: {{ u.groups | join(',') | upper }}\n{%- endif %}\n    - shell: {{ u.get('shell', \
                    '/bin/sh') }}  # {{ loop.index }}\n{% endfor %}\n";
const DEFAULTS: &str =
    "pkg: foo\nsvc:\n  name: food\n  ports: [80, 443]\n  opts:\n    a: 1\n    b: two\n";
const LIB: &str = "{% macro fmt(d, sep='=') %}{% for k, v in d | dictsort %}{{ k }}{{ sep }}{{ v }};{% endfor %}{% endmacro %}";
const MAP: &str = "{% import_yaml 'f/defaults.yaml' as defaults %}\n{% from 'f/lib.jinja' import fmt %}\n{% set os_map = \
                   {'Debian': {'pkg': 'deb-foo'}, 'RedHat': {'pkg': 'rh-foo'}} %}\n{% do \
                   defaults.update(os_map.get(grains.os_family, {})) %}\n{% do \
                   defaults.svc.update(pillar.get('foo', {})) %}\n{% set foo = defaults %}\n{% set line = fmt(foo.svc.opts) %}\n";
const CHAIN: &str = "{%- from 'f/map.jinja' import foo, line with context %}\n{{ foo.pkg }}:\n  pkg.installed: []\n  \
                     service.running:\n    - name: {{ foo.svc.name }}\n    - opts: {{ line }}\n{% for p in foo.svc.ports \
                     %}    - port: {{ p }}\n{% endfor %}";

/// The CPU time of this thread: the clock would also count what other programs take.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
}

#[expect(clippy::print_stdout, reason = "an example program")]
fn time(name: &str, template: &str, context: &Dict, rounds: u32) {
    let env = Environment::new();
    let loader = SaltLoader { files: Tree, local: true };
    let render =
        || env.render_salt(template, context, &loader).unwrap_or_else(|error| panic!("{error}"));
    let size = render().text.len();
    let start = cpu_ns();
    for _ in 0..rounds {
        render();
    }
    let each = (cpu_ns() - start) / 1e3 / f64::from(rounds);
    println!("{name}: {each:.1} us ({size} bytes)");
}

fn main() {
    let users: Vec<_> = (0..2000)
        .map(|n: i64| dict! { "name" => format!("user{n}"), "uid" => n, "groups" => list!["wheel", "adm"] })
        .collect();
    let context = halite_value::entries! {
        "users" => users,
        "grains" => dict! { "os_family" => "RedHat" },
        "pillar" => dict! { "foo" => dict! { "x" => 1 } },
    };
    time("loop2000", LOOP, &context, 200);
    context.remove("users");
    time("chain", CHAIN, &context, 5000);
    time("tiny", "{{ grains.os_family }}", &context, 20000);
}
