//! `status`: an event with what functions of the module `status` return.

use halite_spec::{Call, Cx, Result};
use halite_value::{Dict, Value, entries};

use crate::{Config, Problem, Watch, beacon};

beacon! {
    /// Tell load, memory, processors and more, at every look.
    "status": Status
}

/// What is told when nothing is asked for.
const USUAL: [&str; 5] = ["loadavg", "cpustats", "meminfo", "vmstats", "time"];

#[derive(Default)]
pub struct Status;

impl Watch for Status {
    fn validate(config: &Config) -> Result<(), Problem> {
        config.list().map(drop)
    }

    fn look(&mut self, cx: &Cx, config: &Config) -> Result<Vec<Dict>> {
        let mut wanted = config.own();
        if wanted.is_empty() {
            wanted = USUAL.iter().map(|name| ((*name).to_owned(), "all".into())).collect();
        }
        let told = Dict::new();
        for (function, items) in wanted {
            let value = match cx.call(&format!("status.{function}"), Call::default()) {
                Ok(value) => value,
                // differs: genuine Salt tells nothing at all when one of them fails.
                Err(error) => {
                    told.insert(
                        function,
                        format!("Status beacon is incorrectly configured: {error}"),
                    );
                    continue;
                }
            };
            let items = items.items_of_sequence().unwrap_or_else(|| vec![items]);
            told.insert(function, chosen(&value, &items));
        }
        let now = jiff::Timestamp::try_from(cx.host.now()).unwrap_or_default();
        let now = now.to_zoned(jiff::tz::TimeZone::system()).datetime();
        let tag = now.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string();
        Ok(vec![entries! { "tag" => tag, "data" => told }])
    }
}

fn chosen(value: &Value, items: &[Value]) -> Value {
    if items.is_empty() || items.iter().any(|item| *item == *"all") || value.as_dict().is_none() {
        return value.clone();
    }
    let ret = Dict::new();
    for item in items {
        match value.get(&item.to_str()) {
            Some(part) => ret.insert(item.to_str(), part),
            None => {
                return format!("Status beacon is incorrectly configured: {}", item.repr()).into();
            }
        };
    }
    ret.into()
}
