//! `state`: events as they happen.

use halite_client::{EventItem, Request};
use halite_spec::{Cx, Error, Result, function, module};
use halite_target::fnmatch::fnmatch;
use halite_value::json;

use crate::master;

module! {
    /// Events as they happen.
    "state": event,
}

/// Print events of the master's bus as they happen.
///
/// ```console
/// $ salt-run state.event pretty=True
/// $ salt-run state.event 'salt/job/*/new' count=1
/// ```
#[function]
pub fn event(
    cx: &Cx,
    /// A glob for tags.
    #[default("*".to_owned())]
    tagmatch: String,
    /// End after this many; -1: never.
    #[default(-1)]
    count: i64,
    /// Print nothing.
    #[default(false)]
    quiet: bool,
    /// Print the data on several lines.
    #[default(false)]
    pretty: bool,
) -> Result<()> {
    let mut client = master::connect(cx)?;
    let request = Request::Events { tag: "".into(), after: None };
    let stream = client.send(&request).map_err(master::failed)?;
    let mut left = count;
    while left != 0 {
        let Some(item) = client.event(stream, None).map_err(master::failed)? else { break };
        let EventItem::Event { tag, data, .. } = item else { continue };
        if !fnmatch(&tag, &tagmatch) {
            continue;
        }
        if !quiet {
            let style = match pretty {
                true => json::Style {
                    indent: Some(4),
                    sort_keys: true,
                    bytes_as_text: true,
                    ..json::Style::default()
                },
                false => json::Style { bytes_as_text: true, ..json::Style::default() },
            };
            let text = json::to_string_styled(&data.into(), &style)
                .map_err(|error| Error::failed(error.to_string()))?;
            master::say(cx, format!("{tag}\t{text}"))?;
        }
        left -= 1;
    }
    Ok(())
}
