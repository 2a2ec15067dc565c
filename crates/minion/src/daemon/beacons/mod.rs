//! The minion's beacons: which there are ([`Board`]), and the thread that asks them ([`watch`]).

mod board;
mod watch;

pub use board::Board;
pub(crate) use watch::Beacons;
