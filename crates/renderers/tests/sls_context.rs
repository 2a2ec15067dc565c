//! The variables of templates, as recorded from genuine Salt.

use halite_renderers::sls_context;
use halite_value::json;

#[test]
fn variables_are_salts() {
    let cases = json::from_str(include_str!("sls_context.json")).expect("JSON");
    let cases = cases.as_list().expect("a list").to_vec();
    assert!(cases.len() > 20);
    for case in cases {
        let path = case.get_str("path");
        let sls = case.get_str("sls").expect("a name");
        let context = sls_context(path.as_deref(), &sls);
        // Ours alone: what formulas make of `tpldir` themselves.
        let root = context.remove("tplroot");
        let folder = context.get("tpldir").filter(|_| context.get("tpldot").is_some());
        let first = folder.map(|folder| folder.to_str().split('/').next().map(str::to_owned));
        assert_eq!(root.map(|root| root.to_str().to_string()), first.flatten(), "{path:?} {sls:?}");
        let context = halite_value::Value::Dict(context);
        assert_eq!(context, case.get("expected").expect("an answer"), "{path:?} {sls:?}");
    }
}
