//! `multi_returner`: hands returns to several returners.

use halite_spec::{Cx, Result};
use halite_value::{Dict, SmolStr, Value};

use crate::{Options, deliver_all, returner};

returner! {
    /// Hand returns to each returner of the list `multi_returner`.
    "multi_returner": ret
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a returner")]
fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    let listed = cx.opt("multi_returner").unwrap_or_default();
    let names = listed.items_of_sequence().unwrap_or_else(|| vec![listed]);
    let names: Vec<_> = names.iter().map(Value::to_str).collect();
    let others = names.iter().map(SmolStr::as_str).filter(|name| *name != "multi_returner");
    deliver_all(cx, others, options, ret);
    Ok(())
}
