//! The state newcomers write in CONTRIBUTING.md does what the guide says.

#![allow(unreachable_pub, reason = "the state is written as in a crate of states")]

use halite_testkit::Kit;
use halite_value::Value;

mod motd {
    include!(concat!(env!("OUT_DIR"), "/motd.rs"));
}

#[test]
fn the_first_state_works() {
    let kit = Kit::new();
    kit.fake.file("/etc/motd", "Old words.\n");
    let present = &motd::STATES.states[0];
    let run = |test| {
        let call = halite_spec::Call::default().with("name", "greeting").with("text", "Be kind.");
        (present.run)(&kit.cx, call, test).expect("it runs").0
    };
    let comments = [(true, "The message would be changed"), (false, "The message was changed")];
    for (test, comment) in comments {
        let outcome = run(test);
        assert_eq!(outcome.comment, comment);
        let change = outcome.changes.get("motd").unwrap_or_default();
        assert_eq!(change.get("new"), Some(Value::from("Be kind.")));
    }
    assert_eq!(run(false).comment, "The message is as it should be");
    let text = kit.cx.host.read_text(std::path::Path::new("/etc/motd")).expect("it is there");
    assert_eq!(text, "Be kind.\n");
}
