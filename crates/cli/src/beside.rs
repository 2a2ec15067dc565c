//! The master on a minion's own machine, for functions that are asked of it there: `saltutil.runner`,
//! `saltutil.wheel`, `saltutil.cmd`.
//!
//! As in Salt its configuration is looked for beside the minion's: a file `master` in the same folder.
//! What may be asked is decided by the socket: only the master's user gets anything from it.

use std::path::Path;

use halite_config::{CONFIG_DIR, Request, Role};
use halite_spec::{Cx, Error, Result};
use halite_value::Value;

use crate::machine::Real;

/// Asks the master; `None` if the question is not one for it.
pub(crate) fn ask(cx: &Cx, load: &Value) -> Option<Result<Value>> {
    let file = cx.opt_str("conf_file").unwrap_or_default();
    let folder = Path::new(file.as_str()).parent().and_then(Path::to_str);
    let folder = folder.filter(|folder| Path::new(folder).join("master").is_file());
    let request = Request::new(Role::Master, folder.unwrap_or(CONFIG_DIR));
    match halite_config::load(&request, &Real) {
        Ok(opts) => halite_runners::answer(&Cx { opts: opts.values().clone(), ..cx.clone() }, load),
        Err(error) => Some(Err(Error::failed(error.to_string()))),
    }
}
