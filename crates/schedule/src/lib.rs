//! The schedule: given jobs, what they did, and the time, which are due, and when is the next.
//!
//! Pure: no clock, no threads, no files. The daemons of minion and master hold a [`Table`], ask it
//! what is due ([`Table::tick`]), run that, and sleep until [`Table::next`]. `manage.rs` answers
//! what the `schedule` module asks a daemon, in the words genuine tools use on the local bus.
//!
//! Beyond Salt: intervals keep their beat, a clock that jumps neither stalls a job nor runs one
//! twice for the same moment, and a job whose options cannot be understood says so once.

mod cron;
mod job;
mod manage;
mod table;
mod when;

pub use cron::{Cron, CronError};
pub use job::{Job, Timing};
pub use manage::Answer;
pub use table::{Fire, Table};
pub use when::{WhenError, parse as parse_when};
