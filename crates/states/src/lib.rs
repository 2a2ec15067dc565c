//! States: one file per Salt state module, named as Salt names it.
//!
//! A file begins with its `states!` list; each state is a struct whose fields are its arguments,
//! with [`State`](halite_spec::State): observe, plan, apply. States call `modules`, never the
//! reverse, and know nothing of requisites, guards or `test=True`: those are the engine's.

use halite_spec::StateModule;

// gen:begin
pub mod cmd;
pub mod pkg;
pub mod service;
pub mod test;

/// Every state module of this crate.
pub static ALL: &[&StateModule] = &[&cmd::STATES, &pkg::STATES, &service::STATES, &test::STATES];
// gen:end
