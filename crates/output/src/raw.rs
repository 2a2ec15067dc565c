//! `raw`: the value as Python prints it.

use halite_value::Value;

use crate::{Style, Unfit};

pub(crate) fn render(ret: &Value, _: &Style, out: &mut String) -> Result<(), Unfit> {
    out.push_str(&text(ret));
    Ok(())
}

/// The last resort: this one can show anything.
pub(crate) fn text(ret: &Value) -> String {
    ret.to_str().into()
}
