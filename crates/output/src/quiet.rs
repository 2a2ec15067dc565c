//! `quiet`: nothing.

use halite_value::Value;

use crate::{Style, Unfit};

pub(crate) fn render(_: &Value, _: &Style, _: &mut String) -> Result<(), Unfit> {
    Ok(())
}
