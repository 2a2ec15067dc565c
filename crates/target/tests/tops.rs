//! Top files of states against what genuine Salt 3008 made of them (`record_tops.py`).

use halite_target::{
    Error, Minion,
    top::{self, Matching, Strategy, Tops},
};
use halite_value::{Value, dict, json, list};

#[test]
fn genuine_answers() {
    let cases = json::from_str(include_str!("tops.json")).expect("JSON");
    let cases = cases.items_of_sequence().expect("a list");
    assert!(cases.len() > 90);
    let grains = dict! { "os" => "Debian", "ipv4" => list!["10.0.0.5"] };
    let (pillar, groups) = (dict! { "a" => "b" }, dict! { "grp" => "web*" });
    let minion = Minion {
        id: "web1",
        grains: grains.as_dict(),
        pillar: pillar.as_dict(),
        ..Minion::default()
    };
    for case in cases {
        let named = format!("{} {:?}", case.get_str("name").expect("name"), case.get("strategy"));
        let tops: Tops = case
            .get("tops")
            .and_then(|tops| tops.items_of_sequence())
            .expect("tops")
            .iter()
            .map(|pair| {
                let pair = pair.items_of_sequence().expect("a pair");
                (pair[0].to_str(), pair[1].items_of_sequence().expect("files"))
            })
            .collect();
        let strategy = case.get_str("strategy").expect("strategy");
        let strategy = Strategy::named(&strategy).unwrap_or_default();
        let merged = match top::merge_states(&tops, strategy, Some("base")) {
            Ok(merged) => merged,
            Err(error) => {
                assert_eq!(case.get_str("crash").as_deref(), Some(&*error.to_string()), "{named}");
                continue;
            }
        };
        assert_eq!(Some(Value::from(&merged)), case.get("top"), "{named}");
        let wrong = Value::list(top::verify(&Value::from(&merged)));
        assert_eq!(Some(wrong), case.get("verify"), "{named}");
        let Some(expected) = case.get("matches") else { continue };
        let saltenv = case.get_str("saltenv");
        let mut on_error = |_: &Value, _: Error| {};
        let mut matching = Matching {
            custom: None,
            env: saltenv.as_deref(),
            minion,
            nodegroups: groups.as_dict(),
            custom: None,
            on_error: &mut on_error,
        };
        let envs = ["base", "dev", "qa"].map(str::to_owned);
        let own = top::state_matches(&merged, &envs, &mut matching);
        assert_eq!(Value::from(own), expected, "{named} in {saltenv:?}");
    }
}
