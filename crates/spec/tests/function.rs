//! `#[function]`, `#[derive(Args)]`, `module!` and `states!` as authors use them.

use halite_spec::{AbsPath, Applied, Args, Cx, Plan, Result, State, function, module, states};

module! {
    /// Look at files.
    "file": contains, list_,
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
    "file": "absent" => Absent,
}

#[test]
fn declarations_become_data() {
    assert_eq!(MODULE.name, "file");
    let names: Vec<_> = MODULE.functions.iter().map(|function| function.name).collect();
    assert_eq!(names, ["contains", "list"]);
    let contains = MODULE.functions[0];
    assert_eq!(contains.doc, "Tell whether a file holds a piece of text.");
    assert_eq!(contains.params[0].doc, "The file to look in.");
    assert_eq!(contains.params[0].kind, "an absolute path");
    assert!(contains.params[1].default.is_none());
    let default = contains.params[2].default.expect("optional");
    assert_eq!(default(), halite_value::Value::from(false));
    let absent = &STATES.states[0];
    assert_eq!((absent.name, (absent.doc)()), ("absent", "Remove a file."));
    assert_eq!((absent.params)()[1].aliases, ["other_word"]);
    assert!(absent.watch.is_none());
}
