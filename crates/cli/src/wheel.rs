//! Wheel functions inside the master: the crate `runners` has them, the master calls them.

use std::sync::Arc;

use halite_master::{
    Master,
    runners::{Call, Outcome, Runners},
};
use halite_spec::{Call as Arguments, Cx, Error, Job};
use halite_value::Dict;

use crate::{programs::master::own_context, workshop::MasterWorks};

/// The wheel functions of a master.
pub struct Wheel {
    cx: Cx,
    works: Arc<MasterWorks>,
}

impl Wheel {
    pub fn new(opts: &Dict, works: Arc<MasterWorks>) -> Self {
        Self { cx: own_context(opts).0, works }
    }
}

impl Runners for Wheel {
    fn run(&self, master: &Arc<Master>, call: &Call) -> Option<Outcome> {
        let Some(function) = halite_runners::wheel_function(&call.function) else {
            return self.works.users_wheel(master, call);
        };
        let job = Job::new(call.jid.as_str(), call.function.clone(), call.user.clone());
        let cx = Cx { job: Arc::new(job), context: Dict::new(), ..self.cx.clone() };
        let given = Arguments { args: call.args.clone(), kwargs: call.kwargs.shallow_copy() };
        Some(match (function.call)(&cx, given) {
            Ok(value) => Outcome { value, success: true },
            // To Salt this is an answer: how the function is called.
            Err(Error::Args(wrong)) => Outcome {
                value: format!(
                    "\nPassed invalid arguments: {}\n\nUsage:\n\n{}",
                    halite_minion::failure::python_text(&call.function, Some(function), &wrong),
                    function.doc
                )
                .into(),
                success: true,
            },
            Err(error) => Outcome {
                value: format!("Exception occurred in wheel {}: {error}", call.function).into(),
                success: false,
            },
        })
    }
}
