//! `test`: states that succeed, fail or change as told.

use halite_spec::{Applied, Args, Cx, Error, Keys, Outcome, Plan, Result, State, states};
use halite_value::{Dict, List, Value, dict, entries, lookup};

states! {
    /// Succeed, fail or change as told.
    "test": "nop" => Nop,
    "succeed_without_changes" => SucceedWithoutChanges,
    "fail_without_changes" => FailWithoutChanges,
    "succeed_with_changes" => SucceedWithChanges,
    "fail_with_changes" => FailWithChanges,
    "show_notification" => ShowNotification,
    "configurable_test_state" => Configurable,
    "check_pillar" => CheckPillar,
}

/// What the states here pretend to change.
fn pretended() -> Dict {
    entries! {
        "testing" => dict! { "old" => "Unchanged", "new" => "Something pretended to change" },
    }
}

/// Answers `watch` for every state of this module: it shows which requisites changed.
fn watched(cx: &Cx) -> Outcome {
    let changed = List::new();
    let running = cx.low.get("__running__");
    let watched = cx.low.get("__reqs__").and_then(|requisites| requisites.get("watch"));
    for chunk in watched.and_then(|chunks| chunks.items_of_sequence()).unwrap_or_default() {
        let text = |key: &str| chunk.get(key).unwrap_or_default().to_str();
        let (state, id) = (text("state"), text("__id__"));
        let tag = format!("{state}_|-{id}_|-{}_|-{}", text("name"), text("fun"));
        let ret = running.as_ref().and_then(|running| running.get(&tag));
        if ret.and_then(|ret| ret.get("changes")).is_some_and(|changes| changes.truthy()) {
            changed.push(format!("{state}: {id}"));
        }
    }
    let changes = entries! { "Requisites with changes" => changed };
    let keys = Keys(["name", "result", "comment", "changes"]);
    Outcome::new(Some(true), changes, "Watch statement fired.").with_keys(keys)
}

/// Do nothing, successfully: a place to hang requisites on.
#[derive(Args)]
pub struct Nop {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// Anything.
    #[arg(by_name)]
    #[expect(dead_code, reason = "taken and ignored")]
    args: halite_spec::Rest,
}

impl State for Nop {
    type Seen = ();
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::nothing("Success!"))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// A comment as given: a list is one line each, as in every state's return.
fn said(comment: &Value, default: &str) -> String {
    match (comment.is_null(), comment.items_of_sequence()) {
        (true, _) => default.to_owned(),
        (_, Some(lines)) => lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        _ => comment.to_str().into(),
    }
}

/// Succeed without changing anything.
#[derive(Args)]
#[arg(open)]
pub struct SucceedWithoutChanges {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// What to say.
    #[default(Value::Null)]
    #[arg(by_name)]
    comment: Value,
}

impl State for SucceedWithoutChanges {
    type Seen = ();
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::nothing(said(&self.comment, "Success!")))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// Fail without changing anything.
#[derive(Args)]
#[arg(open)]
pub struct FailWithoutChanges {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// What to say.
    #[default(Value::Null)]
    #[arg(by_name)]
    comment: Value,
}

impl State for FailWithoutChanges {
    type Seen = ();
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let plan = Plan::unknown().pending("If we weren't testing, this would be a failure!");
        Ok(Plan { test_result: Some(false), ..plan })
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Err(Error::failed(said(&self.comment, "Failure!")))
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// Succeed, pretending a change.
#[derive(Args)]
#[arg(open)]
pub struct SucceedWithChanges {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// What to say.
    #[default(Value::Null)]
    #[arg(by_name)]
    comment: Value,
}

const WOULD_CHANGE: &str = "If we weren't testing, this would be successful with changes";
const WOULD_FAIL: &str = "If we weren't testing, this would be failed with changes";

impl State for SucceedWithChanges {
    type Seen = ();
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        let done = said(&self.comment, "Success!");
        Ok(Plan::changes(pretended()).pending(WOULD_CHANGE).done(done))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// Fail, pretending a change.
#[derive(Args)]
#[arg(open)]
pub struct FailWithChanges {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// What to say.
    #[default(Value::Null)]
    #[arg(by_name)]
    comment: Value,
}

impl State for FailWithChanges {
    type Seen = ();
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::changes(pretended()).pending(WOULD_FAIL))
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::failed(pretended(), said(&self.comment, "Failure!")))
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// Show a message with the results.
#[derive(Args)]
#[arg(open)]
pub struct ShowNotification {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// The message; the name if none is given.
    text: Option<String>,
}

impl State for ShowNotification {
    type Seen = ();
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        match &self.text {
            Some(text) if !text.is_empty() => Ok(Plan::nothing(text)),
            _ => Err(Error::invalid("Missing required argument text.")),
        }
    }

    fn apply(&self, _: &Cx, (): ()) -> Result<Applied> {
        Ok(Applied::as_planned())
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// Change, succeed and warn as told.
#[derive(Args)]
pub struct Configurable {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// True, False or "Random".
    #[default(Value::Bool(true))]
    changes: Value,
    /// True, False or "Random".
    #[default(Value::Bool(true))]
    result: Value,
    /// What to say.
    #[default(String::new())]
    comment: String,
    /// A warning, or a list of them.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    warnings: Vec<String>,
    /// Whether changes are told in test mode.
    #[default(false)]
    allow_test_mode_failure: bool,
}

impl Configurable {
    fn decide(what: &str, value: &Value, cx: &Cx) -> Result<bool> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            Value::Str(word) if word.eq_ignore_ascii_case("random") => {
                let now = cx.host.now().duration_since(std::time::UNIX_EPOCH);
                Ok(now.is_ok_and(|now| now.subsec_micros() % 2 == 0))
            }
            _ => Err(Error::invalid(format!(
                "You have specified the state option '{what}' with invalid arguments. It must be \
                 either True, False, or 'Random'"
            ))),
        }
    }
}

impl State for Configurable {
    type Seen = (bool, bool);
    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<(bool, bool)> {
        let changes = Self::decide("changes", &self.changes, cx)?;
        Ok((changes, Self::decide("result", &self.result, cx)?))
    }

    fn plan(&self, (changes, result): &(bool, bool)) -> Result<Plan> {
        let plan = if *changes { Plan::changes(pretended()) } else { Plan::unknown() };
        let mut plan = plan.done(&self.comment);
        plan.pending =
            if self.comment.is_empty() { "This is a test".into() } else { self.comment.clone() };
        if *result {
            plan.test_result = if *changes { None } else { Some(true) };
        } else {
            plan.test_result = Some(!self.allow_test_mode_failure);
            if *changes && !self.allow_test_mode_failure {
                plan.test_result = None;
            }
        }
        plan.warnings.clone_from(&self.warnings);
        Ok(plan)
    }

    fn apply(&self, _: &Cx, (changes, result): (bool, bool)) -> Result<Applied> {
        let changes = if changes { pretended() } else { Dict::new() };
        Ok(Applied { changes: Some(changes), result: Some(result), ..Applied::default() })
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}

/// Check that pillar values are there and have the right type.
#[derive(Args)]
pub struct CheckPillar {
    /// A name, for people.
    #[expect(dead_code, reason = "only shown by the engine")]
    name: Value,
    /// Paths that must be there.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    present: Vec<String>,
    /// Paths of booleans.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    boolean: Vec<String>,
    /// Paths of whole numbers.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    integer: Vec<String>,
    /// Paths of texts.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    string: Vec<String>,
    /// Paths of lists.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    listing: Vec<String>,
    /// Paths of dicts.
    #[default(Vec::new())]
    #[shown(halite_value::Value::Null)]
    dictionary: Vec<String>,
    /// Also name those that are right.
    #[default(false)]
    verbose: bool,
}

impl State for CheckPillar {
    /// Whether it is right, and the comment.
    type Seen = (bool, String);
    const WATCHES: bool = true;

    fn observe(&self, cx: &Cx) -> Result<(bool, String)> {
        type Fits = fn(&Value) -> bool;
        let checks: [(&[String], &str, Fits); 6] = [
            (&self.present, "None", |_| true),
            (&self.boolean, "<class 'bool'>", |value| matches!(value, Value::Bool(_))),
            (&self.integer, "<class 'int'>", |value| {
                matches!(value, Value::Int(_) | Value::BigInt(_) | Value::Bool(_))
            }),
            (&self.string, "(<class 'str'>,)", |value| matches!(value, Value::Str(_))),
            (&self.listing, "<class 'list'>", |value| matches!(value, Value::List(_))),
            (&self.dictionary, "<class 'dict'>", |value| matches!(value, Value::Dict(_))),
        ];
        if checks.iter().all(|(paths, _, _)| paths.is_empty()) {
            return Err(Error::invalid("Missing required argument text."));
        }
        let (failed, fine) = (Dict::new(), Dict::new());
        for (paths, class, fits) in checks {
            for path in paths {
                match lookup::traverse(&Value::from(&cx.pillar), path, ":") {
                    None => failed.insert(path, "is missing.".to_owned()),
                    Some(value) if fits(&value) => fine.insert(path, class),
                    Some(_) => failed.insert(path, format!("is not {class}.")),
                };
            }
        }
        let mut comment = String::new();
        for (path, problem) in &failed {
            comment += &format!("Pillar key \"{path}\" {problem}\n");
        }
        if self.verbose && !fine.is_empty() {
            comment += "Those keys passed the check:\n";
            for (path, class) in &fine {
                comment += &format!("- {path} ({class})\n");
            }
        }
        Ok((failed.is_empty(), comment))
    }

    fn plan(&self, (right, comment): &(bool, String)) -> Result<Plan> {
        if *right { Ok(Plan::nothing(comment)) } else { Err(Error::failed(comment)) }
    }

    fn apply(&self, _: &Cx, _: (bool, String)) -> Result<Applied> {
        Ok(Applied::as_planned())
    }

    fn watch(&self, cx: &Cx, _: bool) -> Result<Outcome> {
        Ok(watched(cx))
    }
}
