//! YAML that nobody would write: it must end in a value or an error, soon, and never in a panic.
//! Also places and limits.

use std::time::{Duration, Instant};

use halite_value::{
    Place, Value,
    yaml::{self, DumpOptions, ErrorKind, Limits, LoadOptions},
};

/// A small generator of our own: the same numbers on every machine, from a printed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const SEEDS: &[&str] = &[
    "nginx:\n  pkg.installed:\n    - name: nginx\n    - version: 1.10\n  service.running: []\n",
    "a: &x [1, 2, {b: c}]\nd: *x\ne: {<<: {f: g}, h: i}\n",
    "text: |2-\n    x\n  y\n\nfold: >+\n  one\n  two\n\n",
    "- 'it''s'\n- \"a\\x41\\u00e9\\\n  b\"\n- !!binary aGk=\n- !!set {a, b}\n",
    "%TAG !e! tag:yaml.org,2002:\n---\n!e!int 5\n...\n",
    "? [a, b: c]\n: - d\n  - ? e\n    : f\n",
    "{a: 1, ? b : [c, d: e], 'f': \"g\"}\n",
    "mode: 0644\ntime: 12:30:45\nbig: 99999999999999999999\nf: 1.5e+3\n",
];

const PIECES: &[&str] = &[
    ":",
    ": ",
    "- ",
    "-",
    "? ",
    "?",
    "[",
    "]",
    "{",
    "}",
    ",",
    "#",
    " #",
    "&a ",
    "*a",
    "!",
    "!!str ",
    "!!int ",
    "!!float ",
    "!!bool ",
    "!!pairs ",
    "!!omap ",
    "!!binary ",
    "!<",
    ">",
    "|",
    "|+3\n",
    ">-\n",
    "'",
    "\"",
    "\\",
    "\\u12",
    "\\U00110000",
    "\n",
    "\n\n  ",
    "\t",
    "\r",
    "\r\n",
    "%",
    "%YAML 1",
    "%41",
    "%E2%82",
    "@",
    "`",
    "---\n",
    "...",
    "<<: ",
    "=",
    "~",
    "0x_",
    "0_",
    "1:2:3",
    "-.inf",
    "é",
    "日",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "😀",
    "\u{1}",
    "\u{ffff}",
    "yes",
    " ",
    "  ",
];

fn mutated(dice: &mut Dice) -> String {
    let mut text: Vec<char> = dice.pick(SEEDS).chars().collect();
    for _ in 0..1 + dice.roll(6) {
        let at = dice.roll(text.len() + 1);
        match dice.roll(4) {
            0 => {
                text.drain(at..(at + 1 + dice.roll(8)).min(text.len()).max(at));
            }
            1 => {
                let from = dice.roll(text.len() + 1);
                let copy: Vec<char> = text[from..].iter().take(dice.roll(30)).copied().collect();
                text.splice(at..at, copy);
            }
            _ => {
                let piece = dice.pick(PIECES).repeat(1 + dice.roll(3) * dice.roll(3));
                text.splice(at..at, piece.chars());
            }
        }
    }
    text.into_iter().take(4000).collect()
}

/// Reads, writes and reads again: what was written must be read as the same.
fn exercise(text: &str) {
    let options = LoadOptions { places: true, ..LoadOptions::default() };
    let Ok(value) = yaml::load(text, &options) else { return };
    for mut options in [DumpOptions::default(), DumpOptions::block(), DumpOptions::flow()] {
        options.sort_keys = false;
        let Ok(dumped) = yaml::dump(&value, &options) else { continue };
        let again = yaml::load_str(&dumped).map(|value| value.repr());
        if !is_lossy(&value, 0) {
            let again = again.unwrap_or_else(|error| format!("{error}"));
            assert_eq!(value.repr(), again, "{text:?} became {dumped:?}");
        }
    }
}

/// Tells whether a value has parts that come back as something else: tuples as lists, sets in
/// another order.
fn is_lossy(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > 100 => true,
        Value::Tuple(_) | Value::Object(_) => true,
        Value::List(list) => list.into_iter().any(|item| is_lossy(&item, depth + 1)),
        Value::Dict(dict) => dict.into_iter().any(|(_, item)| is_lossy(&item, depth + 1)),
        _ => false,
    }
}

#[test]
fn no_text_panics_or_hangs() {
    let seed = 0x5eed_1234_abcd;
    let mut dice = Dice(seed);
    let began = Instant::now();
    for round in 0..6000 {
        let text = mutated(&mut dice);
        let one = Instant::now();
        exercise(&text);
        let took = one.elapsed();
        assert!(took < Duration::from_millis(500), "seed {seed:#x}, {round}: {took:?}: {text:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn hostile_texts_end_soon() {
    let laughs = |width: usize| {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..100 {
            let alias = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", vec![alias; width].join(", "));
        }
        text
    };
    let merges = {
        let mut text = String::from("x: [[");
        text += "&m0 {k0: 1}";
        for level in 1..140 {
            text += &format!(", &m{level} {{<<: [*m{0}, *m{0}]}}", level - 1);
        }
        text + "]]\ny: {<<: *m139}\n"
    };
    // Every inner mapping holds all the others: as many paths as there are orders of them.
    let crossed = {
        let inner: String = (0..150).map(|n| format!("a{n}: {{<<: *x}}, ")).collect();
        format!("x: &x {{{inner}}}\n")
    };
    let texts = [
        "[".repeat(4096),
        "{".repeat(4096),
        "[{".repeat(2048),
        "- ".repeat(2048),
        "? ".repeat(2048),
        "a: ".repeat(1365),
        "&a ".repeat(1365),
        "!a ".repeat(1365),
        "'".repeat(4095),
        "\"\\".repeat(2048),
        "[a,".repeat(1365),
        "{a: ".repeat(1024),
        "|\n".repeat(2048),
        "\n".repeat(4096),
        "#\n".repeat(2048),
        ":\n".repeat(2048),
        format!("a: {}", "1:".repeat(2000)),
        format!("a: 1{}.5", ":30".repeat(1300)),
        format!("a: 0x{}", "f".repeat(4000)),
        format!("a: {}", "9".repeat(4000)),
        format!("a: !!float {}", "9".repeat(4000)),
        (0..400).map(|depth| " ".repeat(depth % 40) + "a:\n").collect(),
        laughs(9),
        laughs(2),
        merges,
        crossed,
    ];
    for text in texts {
        let text: String = text.chars().take(4096).collect();
        let began = Instant::now();
        let _ = yaml::load_str(&text);
        let took = began.elapsed();
        // A build without optimisation on a busy machine; released, each takes some milliseconds.
        assert!(took < Duration::from_secs(1), "{took:?}: {:?}", &text[..60]);
    }
}

#[test]
fn limits_are_named() {
    let fails = |text: &str, limits: Limits, part: &str| {
        let error = yaml::load(text, &LoadOptions { limits, ..LoadOptions::default() })
            .expect_err("beyond the limit");
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let limits = Limits::default();
    fails("[[[a]]]", Limits { depth: 2, ..limits }, "nested deeper than 2 levels");
    fails("a: 1\nb: 2\n", Limits { bytes: 5, ..limits }, "longer than 5 bytes");
    let text = "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\nb: &b [*a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c]\n";
    assert!(yaml::load_str(text).is_ok());
    fails(text, Limits { nodes: 20, ..limits }, "aliases expand to more than 20 nodes");
}

#[test]
fn aliases_are_the_same_container() {
    let value = yaml::load_str("a: &x [1]\nb: *x\n").expect("valid");
    let (a, b) = (value.get("a").expect("a"), value.get("b").expect("b"));
    assert!(a.is_same(&b));
    a.as_list().expect("a list").push(2);
    assert_eq!(b.repr(), "[1, 2]");
}

#[test]
fn places_are_remembered() {
    let text = "web:\n  pkg.installed:\n    - name: nginx\n    - {version: 1, é: 2}\n";
    let options = LoadOptions { name: "web.sls", places: true, ..LoadOptions::default() };
    let value = yaml::load(text, &options).expect("valid");
    let web = value.get("web").expect("web");
    let list = web.get("pkg.installed").expect("pkg.installed");
    let place = |place: Option<&Place>| place.map(ToString::to_string).unwrap_or_default();
    assert_eq!(place(value.as_dict().and_then(|dict| dict.place_of("web"))), "web.sls:1:1");
    assert_eq!(place(web.as_dict().and_then(|dict| dict.place_of("pkg.installed"))), "web.sls:2:3");
    let list = list.as_list().expect("a list");
    assert_eq!(place(list.place_of(1)), "web.sls:4:7");
    let last = list.get(1).expect("an item");
    assert_eq!(place(last.as_dict().and_then(|dict| dict.place_of("é"))), "web.sls:4:20");
    assert!(yaml::load_str(text).expect("valid").as_dict().expect("a dict").place().is_none());
}

#[test]
fn places_and_errors_go_through_the_map() {
    let map = |line: u32, _column: u32| Place::new("top.sls", line * 10, 0);
    let options = LoadOptions { places: true, place_map: Some(&map), ..LoadOptions::default() };
    let value = yaml::load("a: 1\nb: 2\n", &options).expect("valid");
    let place = value.as_dict().and_then(|dict| dict.place_of("b").cloned());
    assert_eq!(place, Some(Place::new("top.sls", 20, 0)));
    let error = yaml::load("a: 1\nb: c: d\n", &options).expect_err("invalid");
    assert_eq!(error.place(), Some(&Place::new("top.sls", 20, 0)));
    assert_eq!(error.mark().map(|mark| (mark.line, mark.column)), Some((1, 4)));
    // The text stays PyYAML's, about what was rendered.
    assert!(error.to_string().ends_with("line 2, column 5"), "{error}");
}

#[test]
fn dump_names_unknown_options() {
    let mut options = DumpOptions::default();
    let error = options.set("colour", &Value::Null).expect_err("unknown");
    assert_eq!(error.to_string(), "dump_all() got an unexpected keyword argument 'colour'");
    assert!(options.set("width", &Value::from("5")).is_err());
    assert!(options.set("width", &Value::Int(5)).is_ok());
}

#[test]
fn ordered_dicts_are_not_sorted() {
    let load = |ordered| {
        let options = LoadOptions { ordered, ..LoadOptions::default() };
        yaml::load("{z: 1, a: {y: 1, b: 2}}", &options).expect("YAML")
    };
    let dump = |value: &Value, keep_ordered| {
        yaml::dump(value, &DumpOptions { keep_ordered, ..DumpOptions::flow() }).expect("dumps")
    };
    assert_eq!(dump(&load(true), true), "{z: 1, a: {y: 1, b: 2}}\n");
    assert_eq!(dump(&load(true), false), "{a: {b: 2, y: 1}, z: 1}\n");
    assert_eq!(dump(&load(false), true), "{a: {b: 2, y: 1}, z: 1}\n");
    assert_eq!(load(true).repr(), "{'z': 1, 'a': {'y': 1, 'b': 2}}");
    let told = "OrderedDict([('z', 1), ('a', OrderedDict([('y', 1), ('b', 2)]))])";
    assert_eq!(load(true).repr_by_kind(), told);
}
