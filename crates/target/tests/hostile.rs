//! Nothing a user or a minion can write makes matching fail, hang or disagree with itself.

use halite_target::{Expr, Index, Minion, TargetType};
use halite_value::{Dict, Value, dict, list};
use proptest::prelude::*;

fn grains() -> Dict {
    let inner =
        dict! { "a" => list!["x", dict! { "b" => 1 }], "*" => "star", "" => dict! { "" => "" } };
    let grains = dict! {
        "os" => "Debian", "d" => &inner, "e" => dict! { "d" => inner, "é" => "É" }, "n" => 5,
        "ipv4" => list!["10.0.0.1", "junk", 7], "l" => list![list![1], "two"],
    };
    grains.as_dict().expect("dict").clone()
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[GPIJLNSERTM][@!:]{1,2}[a-z*:.\\[\\]()|?0-9/é]{0,8}",
        Just("and".to_owned()),
        Just("or".to_owned()),
        Just("not".to_owned()),
        Just("(".to_owned()),
        Just(")".to_owned()),
        "[a-z*?\\[\\]!-]{0,5}",
        "G@[os*:dean]{1,12}",
        "\\PC{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_minion_and_the_index_agree(words in prop::collection::vec(word(), 0..9)) {
        let text = words.join(" ");
        let grains = grains();
        let mut index = Index::new();
        index.set_accepted("minion", true);
        index.set_grains("minion", Some(grains.clone()));
        index.set_pillar("minion", Some(Dict::new()));
        let pillar = Dict::new();
        let minion = Minion {
            id: "minion",
            grains: Some(&grains),
            pillar: Some(&pillar),
            ..Minion::default()
        };
        for (name, kind) in TargetType::ALL {
            let Ok(expr) = Expr::of(&text, kind) else { continue };
            // A minion's own data and resources, and `M@` globs, are judged by the master alone.
            let differs = ["T@", "M@"].iter().any(|engine| text.contains(engine))
                || matches!(kind, TargetType::Data | TargetType::Resource | TargetType::ManagingMinion);
            let found = index.candidates(&expr, true);
            if !differs {
                prop_assert_eq!(expr.matches(&minion), !found.is_empty(), "{} {}", name, text);
            }
        }
    }

    #[test]
    fn errors_point_into_the_expression(text in "\\PC{0,30}") {
        for (_, kind) in TargetType::ALL {
            if let Err(error) = Expr::of(&text, kind) {
                prop_assert!(error.at.is_none_or(|at| at <= error.expr.chars().count()));
                prop_assert!(!error.pointed().is_empty());
            }
        }
    }
}

#[test]
fn long_paths_do_not_exhaust_the_stack() {
    let mut data = dict! { "*" => "x" };
    for _ in 0..300 {
        data = dict! { "*" => data };
    }
    let grains = data.as_dict().expect("dict");
    for pattern in ["*:".repeat(20_000), ":".repeat(20_000), "*:*".repeat(5_000)] {
        let expr = Expr::parse(&Value::from(pattern), TargetType::Grain, &Default::default());
        let minion = Minion { id: "m", grains: Some(grains), ..Minion::default() };
        let _ = expr.expect("valid").matches(&minion);
    }
}
