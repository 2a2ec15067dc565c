//! `debconf`: answers to the questions Debian packages ask when they are configured.

use halite_modules::debconf;
use halite_spec::{Applied, Args, Call, Cx, Error, Need, Plan, Rest, Result, State, states};
use halite_value::{Dict, Value, entries};

states! {
    /// Answers to the questions Debian packages ask when they are configured.
    "debconf", needs = [
        Need::function("debconf.show", "debconf module could not be loaded"),
    ]: "set" => Set,
    "set_file" => SetFile,
}

/// Make sure that questions of a package have these answers.
#[derive(Args)]
pub struct Set {
    /// The package.
    name: String,
    /// Question → `{type, value}`.
    data: Dict,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

/// A question with its type and the answer wanted.
struct Answer {
    question: String,
    kind: String,
    value: String,
}

impl Answer {
    /// As changes show it.
    fn shown(&self) -> &str {
        if self.kind == "password" { "(password hidden)" } else { &self.value }
    }
}

impl Set {
    fn answers(&self) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for (question, given) in &self.data {
            let part = |name: &str| {
                given.get(name).ok_or_else(|| {
                    Error::failed(format!("the answer to {question} needs `type` and `value`"))
                })
            };
            let (kind, value) = (part("type")?.to_string(), part("value")?);
            let value = match value {
                Value::Bool(flag) => if flag { "true" } else { "false" }.to_owned(),
                other => other.to_string(),
            };
            // debconf stores a multiselect with one space behind each comma.
            let value = if kind == "multiselect" && given.get_str("value").is_some() {
                value.split(',').map(str::trim).collect::<Vec<_>>().join(", ")
            } else {
                value
            };
            answers.push(Answer { question: question.to_string(), kind, value });
        }
        Ok(answers)
    }
}

impl State for Set {
    /// Question → type and value.
    type Seen = Vec<(String, String, String)>;

    fn observe(&self, cx: &Cx) -> Result<Self::Seen> {
        let all = debconf::selections(cx, true)?.get(self.name.as_str()).unwrap_or_default();
        let parts = all.items_of_sequence().unwrap_or_default().into_iter().map(|answer| {
            let part = |at: usize| {
                let parts = answer.items_of_sequence().unwrap_or_default();
                parts.get(at).map(Value::to_string).unwrap_or_default()
            };
            (part(0), part(1), part(2))
        });
        Ok(parts.collect())
    }

    fn plan(&self, seen: &Self::Seen) -> Result<Plan> {
        let changes = Dict::new();
        for answer in self.answers()? {
            let right = seen.iter().any(|(question, kind, value)| {
                *question == answer.question && *kind == answer.kind && *value == answer.value
            });
            if !right {
                let told = format!("New value: {}", answer.shown());
                changes.insert(answer.question.as_str(), told);
            }
        }
        if changes.is_empty() {
            return Ok(Plan::nothing("All specified answers are already set"));
        }
        Ok(Plan::changes(changes))
    }

    fn apply(&self, cx: &Cx, seen: Self::Seen) -> Result<Applied> {
        let planned = self.plan(&seen)?.changes;
        let done = Dict::new();
        for answer in self.answers()? {
            if !planned.contains(answer.question.as_str()) {
                continue;
            }
            let set =
                debconf::set_answer(cx, &self.name, &answer.question, &answer.kind, &answer.value);
            if set.is_err() {
                return Ok(Applied::failed(done, "Some settings failed to be applied."));
            }
            done.insert(answer.question.as_str(), answer.shown());
        }
        Ok(Applied::changes(done))
    }
}

/// Set the answers of a file. It cannot tell whether they are set already, and sets them each time.
#[derive(Args)]
pub struct SetFile {
    /// A name for the state.
    #[expect(dead_code, reason = "an id only")]
    name: String,
    /// Where the file is.
    source: String,
    /// The template engine, if the file is a template.
    template: Option<String>,
    /// Names for the template.
    #[default(Value::Null)]
    context: Value,
    /// Names for the template that `context` may replace.
    #[default(Value::Null)]
    defaults: Value,
    /// Accepted, as Salt does.
    #[expect(dead_code, reason = "taken and ignored")]
    rest: Rest,
}

fn names(given: &Value, what: &str) -> Result<Dict> {
    match given {
        Value::Dict(dict) => Ok(dict.clone()),
        other if !other.truthy() => Ok(Dict::new()),
        _ => Err(Error::failed(format!("{what} must be formed as a dict"))),
    }
}

impl State for SetFile {
    type Seen = ();
    const REPEATS: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        names(&self.context, "Context")?;
        names(&self.defaults, "Defaults")?;
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::unknown()
            .pending("Debconf selections would have been set.")
            .done("Debconf selections were set."))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        let saltenv = cx.saltenv();
        let done = match &self.template {
            None => debconf::load(cx, &self.source, &saltenv)?,
            Some(engine) => {
                let call = Call::default()
                    .with("path", self.source.as_str())
                    .with("template", engine.as_str())
                    .with("context", names(&self.context, "Context")?)
                    .with("defaults", names(&self.defaults, "Defaults")?)
                    .with("saltenv", saltenv.as_str());
                cx.call("debconf.set_template", call)?.truthy()
            }
        };
        if done {
            return Ok(Applied::changes(entries! {}));
        }
        Err(Error::failed("Unable to set debconf selections from file."))
    }
}
