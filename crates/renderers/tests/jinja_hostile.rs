//! Templates that nobody would write in earnest: none may panic, hang or eat the machine.

mod common;

use std::time::{Duration, Instant};

use common::cases;
use halite_renderers::jinja::{Environment, Limits, NoLoader};
use halite_value::Dict;

fn small() -> Environment {
    let limits =
        Limits { fuel: 300_000, output_bytes: 4 << 20, object_bytes: 4 << 20, ..Limits::default() };
    Environment::new().with_limits(limits)
}

/// A small generator of numbers, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

/// Changes a template in one place.
fn mutate(template: &str, other: &str, dice: &mut Dice) -> String {
    const PIECES: [&str; 44] = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "-",
        "+",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        ".",
        ",",
        ":",
        "'",
        "\"",
        "\\",
        "\n",
        " ",
        "~",
        "*",
        "**",
        "//",
        "%",
        "=",
        "==",
        "if ",
        "else ",
        "for ",
        " in ",
        "is ",
        "not ",
        "set ",
        "99999999999",
        "1e400",
        "é",
        "\u{0}",
        "{% endfor %}",
        "{% raw %}",
        "| list",
    ];
    let mut chars: Vec<char> = template.chars().collect();
    let at = dice.roll(chars.len() + 1);
    let length = 1 + dice.roll(6);
    let end = (at + length).min(chars.len());
    match dice.roll(6) {
        0 => drop(chars.drain(at..end)),
        1 => drop(chars.splice(at..at, PIECES[dice.roll(PIECES.len())].chars())),
        2 => {
            let copy: Vec<char> = chars[at..end].to_vec();
            let to = dice.roll(chars.len() + 1);
            drop(chars.splice(to..to, copy));
        }
        3 => drop(chars.splice(at..end, PIECES[dice.roll(PIECES.len())].chars())),
        4 => chars.truncate(at),
        _ => {
            let other: Vec<char> = other.chars().collect();
            let from = dice.roll(other.len() + 1);
            drop(chars.splice(at..end, other[from..].iter().copied().take(30)));
        }
    }
    chars.into_iter().collect()
}

#[test]
fn mutated_templates_neither_panic_nor_hang() {
    let seed = 0x5eed_1234_abcd_0001;
    let mut dice = Dice(seed);
    let env = small();
    let mut all = cases("tests/spec/jinja_cases.json");
    all.extend(cases("tests/spec/jinja_more.json"));
    let templates: Vec<String> = all.iter().map(common::Case::template).collect();
    for round in 0..4 {
        for (case, template) in all.iter().zip(&templates) {
            let mut mutant = template.clone();
            for _ in 0..=round {
                let other = &templates[dice.roll(templates.len())];
                mutant = mutate(&mutant, other, &mut dice);
            }
            let start = Instant::now();
            let result = case.render(&env, &mutant);
            // Whatever it is, it can be told.
            if let Err(error) = result {
                let _ = (error.to_string(), error.as_salt(Some("case")));
            }
            assert!(start.elapsed() < Duration::from_secs(5), "seed {seed:#x}: slow: {mutant:?}");
        }
    }
}

/// Renders with the usual limits; it must end soon, whatever the result.
fn ends(template: &str) -> String {
    let start = Instant::now();
    let limits = Limits { fuel: 1_000_000, ..Limits::default() };
    let result = Environment::new().with_limits(limits).render(template, &Dict::new(), &NoLoader);
    let shown: String = template.chars().take(80).collect();
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}: {shown}", start.elapsed());
    match result {
        Ok(rendered) => rendered.text,
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_would_be_huge_is_refused() {
    for template in [
        "{{ 'a' * 10 ** 10 }}",
        "{{ [1] * 10 ** 12 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 2 ** 2 ** 30 }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '%*d' % (10 ** 9, 1) }}",
        "{{ '{:>9999999999}'.format(1) }}",
        "{{ '{:.999999999f}'.format(1.5) }}",
        "{{ 'a'.center(10 ** 10) }}",
        "{{ 'a'.zfill(10 ** 10) }}",
        "{{ '\t'.expandtabs(10 ** 10) }}",
        "{{ 'a' | indent(10 ** 10, true) }}",
        "{{ 'a' | center(10 ** 10) }}",
        "{{ 'aaaa' | replace('a', 'b' * 10 ** 7) }}",
        "{{ range(10 ** 9) | list }}",
        "{{ 'abc' | product(repeat=40) | list | length }}",
        "{{ range(60) | combinations(30) | list | length }}",
        "{{ range(12) | permutations | list | length }}",
        "{{ lipsum(10 ** 9) }}",
        "{{ '10.0.0.0/8' | network_hosts | length }}",
        "{{ [1] | batch(10 ** 10, 'x') | list }}",
        "{{ [1] | slice(10 ** 10, 'x') | list }}",
        "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set l = [1] %}{% for i in range(100) %}{% do l.extend(l) %}{% endfor %}",
        "{% set ns = namespace(n=7) %}{% for i in range(100) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set l = [1] %}{% for x in l %}{% do l.append(x) %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{{ ('(' * 30 ~ 'a+)+$') | regex_escape | length }}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' | regex_match('(?=a)(a+)+\\\\1$') }}",
        "{% set ns = namespace(t=()) %}{% for i in range(90000) %}{% set ns.t = (ns.t,) %}{% endfor %}",
        "{% set ns = namespace(g=[1]) %}{% for i in range(90000) %}{% set ns.g = ns.g | map('string') %}{% endfor %}{{ ns.g | list }}",
        "{% set ns = namespace(l=[]) %}{% for i in range(90000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
        "{% set ns = namespace(l=[]) %}{% for i in range(90000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l == ns.l.copy() }}",
        "{% set ns = namespace(d={}) %}{% for i in range(90000) %}{% set ns.d = {'a': ns.d} %}{% endfor %}{{ ns.d | json }}",
        "{% set ns = namespace(d={}) %}{% for i in range(90000) %}{% set ns.d = {'a': ns.d} %}{% endfor %}{{ ns.d | yaml }}",
        "{% set ns = namespace(d={}) %}{% for i in range(90000) %}{% set ns.d = {'a': ns.d} %}{% endfor %}{{ ns.d | pprint }}{{ ns.d | flatten }}",
        "{% set ns = namespace(m=none) %}{% for i in range(20000) %}{% macro m() %}{{ ns.m }}{% endmacro %}{% set ns.m = [m, ns.m] %}{% endfor %}",
        "{% set d = {} %}{% do d.update(a=d) %}{{ d }}",
        "{% set l = [] %}{% do l.append(l) %}{{ l }}{{ l == [l] }}",
        "{% set l = [] %}{% do l.append(l) %}{{ l | json }}",
        "{% set l = [] %}{% do l.append(l) %}{{ l | yaml }}",
        "{% set l = [] %}{% do l.append(l) %}{{ l | flatten }}",
        "{% set l = [] %}{% do l.append(l) %}{{ l | sort }}{{ l | unique }}{{ l | pprint }}{{ [l, l] | sort }}",
    ] {
        ends(template);
    }
}

#[test]
fn deep_nesting_is_refused_or_survived() {
    for depth in [50, 90, 2000, 20_000] {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{'a': ", "}"),
            ("-", ""),
            ("not ", ""),
            ("dict(a=", ")"),
            ("1 + (", ")"),
            ("1 if 1 else ", ""),
        ] {
            ends(&format!("{{{{ {}1{} }}}}", open.repeat(depth), close.repeat(depth)));
        }
        for chain in [
            " + 1",
            " ~ 1",
            " | string",
            ".a",
            "[0]",
            " and 1",
            " or 1",
            " < 1",
            " ** 1",
            "()",
            " 'a'",
        ] {
            ends(&format!("{{{{ 1{} }}}}", chain.repeat(depth)));
        }
        ends(&format!("{}x{}", "{% if 1 %}".repeat(depth), "{% endif %}".repeat(depth)));
        ends(&format!("{}x{}", "{% for i in [1] %}".repeat(depth), "{% endfor %}".repeat(depth)));
        ends(&format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}x".repeat(depth)));
        ends(&format!("{}x{}", "{% set x %}".repeat(depth), "{% endset %}".repeat(depth)));
        ends(&format!(
            "{}x{}",
            "{% filter upper %}".repeat(depth),
            "{% endfilter %}".repeat(depth)
        ));
    }
}

#[test]
fn recursion_as_deep_as_genuine_jinja_allows_works_on_a_small_stack() {
    let template = "{% macro f(n) %}{% if n %}{% for i in [1] %}{% with x = n %}{{ (f(x - 1) ~ '.') }}{% endwith %}\
                    {% endfor %}{% endif %}{% endmacro %}{{ f(150) | length }}";
    let run = || ends(template);
    let text = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .map(std::thread::JoinHandle::join);
    assert!(matches!(text, Ok(Ok(text)) if text == "150"));
}

#[test]
fn no_host_object_is_reachable() {
    for template in [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ salt.__init__.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ lipsum.__globals__['os'] }}",
        "{{ ''|attr('__class__')|attr('__mro__') }}",
        "{{ '{0.__class__.__init__.__globals__}'.format(1) }}",
        "{{ ('{0.__class__' ~ '}').format(1) }}",
        "{{ ''.format.__self__ }}",
        "{{ (dict|attr('mro'))() }}",
        "{% macro m() %}{% endmacro %}{{ m._environment }}",
        "{{ [].__reduce_ex__(2) }}",
        "{{ ['__class__'] | map('attr', '__class__') | list | first }}",
        "{{ [''] | map(attribute='__class__') | first }}",
    ] {
        let env = Environment::new();
        let result = env.render(template, &Dict::new(), &NoLoader);
        let error = result.map(|rendered| rendered.text).expect_err(template);
        assert!(
            matches!(
                error.class().name().as_ref(),
                "SecurityError" | "UndefinedError" | "TypeError"
            ),
            "{template}: {error}"
        );
    }
}
