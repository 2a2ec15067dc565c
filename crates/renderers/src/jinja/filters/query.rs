//! The filter `json_query`: JMESPath.

use super::Row;
use crate::jinja::error::Error;

pub(crate) const FILTERS: &[Row] = &[("json_query", "json_query(data, expr)", |_, _| {
    Err(Error::other("RuntimeError", "json_query requires jmespath module installed"))
})];
