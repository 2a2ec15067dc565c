//! `#[function]`, `#[derive(Args)]`, `module!` and `states!` as authors use them.

use halite_spec::{
    AbsPath, Applied, Args, Binder, Call, Cx, Outcome, Param, Plan, Result, State, Watcher, alias,
    function, module, states,
};
use halite_value::{Value, dict};

module! {
    /// Look at files.
    "file": contains, list_, seek, find,
}

alias! { find = seek }

/// Whose files.
#[derive(Args)]
#[arg(defaults)]
pub struct Whose {
    /// The user.
    user: Option<String>,
    /// The group.
    #[default("staff".to_owned())]
    gid: String,
}

/// How to compare; a group in a group.
#[derive(Args)]
#[arg(defaults)]
pub struct How {
    #[default(false)]
    ignore_case: bool,
    #[group]
    whose: Whose,
}

/// Look for a file.
#[function]
pub fn seek(_cx: &Cx, path: AbsPath, #[group] how: How, #[default(7)] depth: i64) -> Result<bool> {
    Ok(how.ignore_case || depth > 0 || path.is_root())
}

/// The same arguments as [`seek`]'s, to be looked at.
#[derive(Args)]
struct Seek {
    path: AbsPath,
    #[group]
    how: How,
    #[default(7)]
    depth: i64,
}

/// Tell whether a file holds a piece of text.
#[function]
pub fn contains(
    _cx: &Cx,
    /// The file to look in.
    path: AbsPath,
    /// The text to look for.
    text: String,
    #[default(false)] ignore_case: bool,
) -> Result<bool> {
    Ok(ignore_case || path.ends_with(text))
}

/// List nothing.
#[function(name = "list")]
pub fn list_(_cx: &Cx, limit: Option<i64>) -> Result<Option<i64>> {
    Ok(limit)
}

/// Remove a file.
#[derive(Args)]
pub struct Absent {
    /// The path to remove.
    name: AbsPath,
    #[default("x".to_owned())]
    #[arg(alias = "other_word")]
    word: String,
}

/// Remove a file only when a watched state changes.
#[derive(Args)]
pub struct Wait(Absent);

impl Watcher for Wait {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        halite_spec::run(&self.0, cx, test)
    }
}

impl State for Absent {
    type Seen = ();

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::change("removed", self.name.to_string()).pending(&self.word))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }
}

states! {
    /// Manage files.
    "file": "absent" => Absent, "wait" => Wait,
}

#[test]
fn declarations_become_data() {
    assert_eq!(MODULE.name, "file");
    let names: Vec<_> = MODULE.functions.iter().map(|function| function.name).collect();
    assert_eq!(names, ["contains", "list", "seek", "find"]);
    let [contains, _, seek, find] = MODULE.functions else { panic!("four functions") };
    assert_eq!((find.doc, find.params.len()), (seek.doc, seek.params.len()));
    assert_eq!(contains.doc, "Tell whether a file holds a piece of text.");
    assert_eq!(contains.params[0].doc, "The file to look in.");
    assert_eq!(contains.params[0].kind, "an absolute path");
    assert!(contains.params[1].default.is_none());
    let default = contains.params[2].default.expect("optional");
    assert_eq!(default(), Value::from(false));
    let absent = &STATES.states[0];
    assert_eq!((absent.name, (absent.doc)()), ("absent", "Remove a file."));
    assert_eq!((absent.params)()[1].aliases, ["other_word"]);
    assert!(absent.watch.is_none());
    let wait = &STATES.states[1];
    assert_eq!((wait.doc)(), "Remove a file only when a watched state changes.");
    assert_eq!((wait.params)().len(), (absent.params)().len());
    assert!(wait.watch.is_some());
}

#[test]
fn a_group_stands_for_its_arguments() {
    let shown = |params: &[Param]| -> Vec<_> {
        let shown = params.iter().map(|param| match param.default {
            Some(make) => format!("{}={}", param.name, make().repr()),
            None => param.name.to_owned(),
        });
        shown.collect()
    };
    let all = ["path", "ignore_case=False", "user=None", "gid='staff'", "depth=7"];
    assert_eq!(shown(seek::SPEC.params), all);
    assert_eq!(shown(Seek::PARAMS), all);
    assert_eq!(shown(How::PARAMS), all[1..4]);
    assert_eq!(seek::SPEC.params[2].doc, "The user.");
}

/// What becomes of a call: the arguments, or the message.
fn bound(call: Call) -> String {
    let mut binder = Binder::new(call, seek::SPEC.params);
    let bind = |binder: &mut Binder| binder.group::<Seek>();
    match bind(&mut binder).and_then(|seek| binder.finish().map(|()| seek)) {
        Ok(Seek { path, how: How { ignore_case, whose: Whose { user, gid } }, depth }) => {
            format!("{path} {ignore_case} {user:?} {gid} {depth}")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_group_is_bound_by_position_and_by_name() {
    let all = Call::of([Value::from("/a"), true.into(), "me".into(), "us".into(), 3.into()]);
    assert_eq!(bound(all), r#"/a true Some("me") us 3"#);
    let some = Call::of(["/a"]).with("gid", "us").with("depth", 2);
    assert_eq!(bound(some), "/a false None us 2");
    assert_eq!(bound(Call::of(["/a"])), "/a false None staff 7");
}

#[test]
fn declared_defaults_serve_callers_in_rust() {
    let how = How::default();
    assert_eq!((how.ignore_case, how.whose.user, how.whose.gid), (false, None, "staff".to_owned()));
}

#[test]
fn errors_name_the_argument_of_a_group() {
    let check = |call: Call, message: &str| assert_eq!(bound(call), message);
    let ok = || Call::of(["/a"]);
    check(ok().with("gid", dict! {}), "argument `gid` must be text, not dict");
    check(ok().with("usr", 1), "unexpected argument `usr`; did you mean `user`?");
    check(Call::default(), "missing argument `path`");
    check(Call::default().with("pth", 1), "unexpected argument `pth`; did you mean `path`?");
    check(Call::default().with("depth", 1), "missing argument `path`");
    check(Call::of(["/a", "", "me"]).with("user", "you"), "argument `user` was given twice");
    check(Call::of(["/a", "", "b", "c", "1", "f"]), "takes 5 arguments but 6 were given");
}
