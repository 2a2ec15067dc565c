//! `yaml`: block style; a negative indentation is flow style.

use halite_value::Value;

use crate::{Style, Unfit};

pub(crate) fn render(_: &Value, _: &Style, _: &mut String) -> Result<(), Unfit> {
    Err(Unfit)
}
