//! `event`: events for the master, fired in the course of a run.

use halite_modules::event;
use halite_spec::{Applied, Args, Cx, Outcome, Plan, Rest, Result, State, Watcher, states};
use halite_value::{Dict, Value};

states! {
    /// Events for the master.
    "event": "send" => Send,
    "fire_master" => Send,
    "wait" => Wait,
}

/// Fire an event.
#[derive(Args)]
pub struct Send {
    /// The tag.
    name: String,
    /// What to send.
    data: Option<Value>,
    /// Further fields of the message to the master.
    preload: Option<Value>,
    /// The environment of the minion, too.
    #[default(Value::from(false))]
    with_env: Value,
    /// The grains, too; or only some.
    #[default(Value::from(false))]
    with_grains: Value,
    /// The pillar, too; or only some.
    #[default(Value::from(false))]
    with_pillar: Value,
    /// Show what was sent.
    #[default(true)]
    show_changed: bool,
    /// Further data to send.
    kwargs: Rest,
}

impl Send {
    fn changes(&self) -> Dict {
        let changes = Dict::new();
        changes.insert("tag", &self.name);
        changes.insert("data", self.data.clone());
        if !self.show_changed {
            changes.insert("data", "-- not shown --");
        }
        changes
    }

    fn fire(&self, cx: &Cx) -> Result<Applied> {
        let fired = event::send(
            cx,
            self.name.clone(),
            self.data.clone(),
            self.preload.clone(),
            self.with_env.clone(),
            self.with_grains.clone(),
            self.with_pillar.clone(),
            false,
            self.kwargs.clone(),
        )?;
        let mut applied = Applied::changes(self.changes()).comment("Event fired");
        applied.result = Some(fired);
        Ok(applied)
    }
}

impl State for Send {
    type Seen = ();

    const REPEATS: bool = true;
    const WATCHES: bool = true;

    fn observe(&self, _: &Cx) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &()) -> Result<Plan> {
        Ok(Plan::changes(self.changes()).pending("Event would have been fired"))
    }

    fn apply(&self, cx: &Cx, (): ()) -> Result<Applied> {
        self.fire(cx)
    }

    fn watch(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        if test {
            return Ok(Outcome::new(None, self.changes(), "Event would have been fired"));
        }
        let applied = self.fire(cx)?;
        Ok(Outcome::new(applied.result, self.changes(), "Event fired"))
    }
}

/// Fire an event only when a watched state changes something.
#[derive(Args)]
pub struct Wait {
    /// The tag.
    name: String,
    /// Set by the engine.
    #[expect(dead_code, reason = "Salt's name for the state that watches")]
    sfun: Option<String>,
    /// What to send.
    data: Option<Value>,
}

impl Watcher for Wait {
    fn fired(&self, cx: &Cx, test: bool) -> Result<Outcome> {
        let none = Value::Bool(false);
        let send = Send {
            name: self.name.clone(),
            data: self.data.clone(),
            preload: None,
            with_env: none.clone(),
            with_grains: none.clone(),
            with_pillar: none,
            show_changed: true,
            kwargs: Rest::default(),
        };
        send.watch(cx, test)
    }
}
