//! Rules of `iptables`, made from the names and values of a state.
//!
//! The order of the parts is Salt's: matches first, then the target and what belongs to it. A rule
//! is a text, because users see it; it is taken apart into words again before it is run.

use halite_value::{Dict, Value};

/// Names that must stand behind the target.
const AFTER_JUMP: &[&str] = &[
    "j",
    "jump",
    "add-set",
    "and-mark",
    "and-tos",
    "checksum-fill",
    "clamp-mss-to-pmtu",
    "clustermac",
    "ctevents",
    "ctmask",
    "del-set",
    "ecn-tcp-remove",
    "exist",
    "expevents",
    "gateway",
    "hash-init",
    "hashmode",
    "helper",
    "label",
    "local-node",
    "log-ip-options",
    "log-level",
    "log-prefix",
    "log-tcp-options",
    "log-tcp-sequence",
    "log-uid",
    "map-set",
    "mask",
    "mss",
    "new",
    "nfmask",
    "nflog-group",
    "nflog-prefix",
    "nflog-range",
    "nflog-threshold",
    "nodst",
    "notrack",
    "on-ip",
    "on-port",
    "or-mark",
    "or-tos",
    "persistent",
    "queue-balance",
    "queue-bypass",
    "queue-num",
    "random",
    "random-fully",
    "rateest-ewmalog",
    "rateest-interval",
    "rateest-name",
    "reject-with",
    "restore",
    "restore-mark",
    "sack-perm",
    "save-mark",
    "selctx",
    "set-class",
    "set-dscp",
    "set-dscp-class",
    "set-mark",
    "set-mss",
    "set-tos",
    "set-xmark",
    "strip-options",
    "timeout",
    "timestamp",
    "to",
    "to-destination",
    "to-ports",
    "to-source",
    "total-nodes",
    "tproxy-mark",
    "ttl-dec",
    "ttl-inc",
    "ttl-set",
    "type",
    "ulog-cprange",
    "ulog-nlgroup",
    "ulog-prefix",
    "ulog-qthreshold",
    "wscale",
    "xor-mark",
    "xor-tos",
    "zone",
    "zone-orig",
    "zone-reply",
    "dst-pfx",
    "hl-dec",
    "hl-inc",
    "hl-set",
    "hmark-dport-mask",
    "hmark-dst-prefix",
    "hmark-mod",
    "hmark-offset",
    "hmark-proto-mask",
    "hmark-rnd",
    "hmark-spi-mask",
    "hmark-sport-mask",
    "hmark-src-prefix",
    "hmark-tuple",
    "led-always-blink",
    "led-delay",
    "led-trigger-id",
    "queue-cpu-fanout",
    "src-pfx",
    "to-port",
    "addr",
    "and-mask",
    "delude",
    "honeypot",
    "or-mask",
    "prefix",
    "reset",
    "reuse",
    "set-mac",
    "shift",
    "static",
    "tarpit",
    "tname",
    "ttl",
];

/// Takes `!` or `not` off the front.
fn negated(value: &str) -> (&'static str, String) {
    for sign in ["!", "not"] {
        if let Some(rest) = value.strip_prefix(sign) {
            return ("! ", rest.strip_prefix(' ').unwrap_or(rest).to_owned());
        }
    }
    ("", value.to_owned())
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// Builds a rule; the error is Salt's words.
pub fn build(given: &Dict) -> Result<String, &'static str> {
    let args = given.shallow_copy();
    if let Some(target) = args.remove("target") {
        args.insert("jump", target);
    }
    for word in [
        "name", "state", "chain", "save", "table", "family", "position", "command", "full", "rules",
    ] {
        args.remove(word);
    }
    let mut rule: Vec<String> = Vec::new();
    let take = |name: &str| args.remove(name);
    let add = |rule: &mut Vec<String>, option: &str, value: &Value| {
        let (sign, value) = negated(&value.to_str());
        rule.push(format!("{sign}{option} {value}"));
    };
    for (name, option) in [("if", "-i"), ("of", "-o")] {
        if let Some(value) = take(name) {
            add(&mut rule, option, &value);
        }
    }
    let policy = args.get("match").is_some_and(|own| own == "policy");
    if !policy && let Some(value) = take("proto") {
        args.insert("protocol", value);
    }
    let protocol = take("protocol");
    if let Some(value) = &protocol {
        add(&mut rule, "-p", value);
    }
    if let Some(matches) = take("match") {
        let names: Vec<String> = match matches.items_of_sequence() {
            Some(items) => items.iter().map(Value::to_string).collect(),
            None => matches.to_str().split(',').map(str::to_owned).collect(),
        };
        for name in names {
            rule.push(format!("-m {name}"));
            if matches!(name.trim(), "pknock" | "quota2" | "recent")
                && let Some(own) = take("name_")
            {
                rule.push(format!("--name {own}"));
            }
        }
        if policy && let Some(value) = take("proto") {
            add(&mut rule, "--proto", &value);
        }
    }
    if let Some(sets) = take("match-set") {
        for set in sets.items_of_sequence().unwrap_or_else(|| vec![sets.clone()]) {
            let (sign, set) = negated(&set.to_str());
            rule.push(format!("-m set {sign}--match-set {set}"));
        }
    }
    let need = |rule: &mut Vec<String>, part: &str| {
        if !rule.iter().any(|own| own == part) {
            rule.push(part.to_owned());
        }
    };
    if let Some(value) = take("connstate") {
        need(&mut rule, "-m state");
        let text = match value.items_of_sequence() {
            Some(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(",").into(),
            None => value,
        };
        add(&mut rule, "--state", &text);
    }
    for (name, option) in [("dport", "--dport"), ("sport", "--sport")] {
        if let Some(value) = take(name) {
            add(&mut rule, option, &value);
        }
    }
    for name in ["dports", "sports"] {
        let Some(value) = take(name) else { continue };
        if !rule.iter().any(|own| own == "-m multiport") {
            rule.push("-m multiport".into());
            if protocol.is_none() {
                return Err("Error: protocol must be specified");
            }
        }
        let ports: Vec<(&str, String)> = match value.items_of_sequence() {
            Some(items) => items.iter().map(|item| negated(&item.to_str())).collect(),
            None => vec![negated(&value.to_str())],
        };
        if ports.iter().any(|(sign, _)| !sign.is_empty()) {
            rule.push("!".into());
        }
        let ports: Vec<String> = ports.into_iter().map(|(_, port)| port).collect();
        rule.push(format!("--{name} {}", ports.join(",")));
    }
    if let Some(comment) = take("comment") {
        need(&mut rule, "-m comment");
        rule.push(format!("--comment \"{comment}\""));
    }
    if let Some(set) = take("set").filter(Value::truthy) {
        add(&mut rule, "--match-set", &set);
    }
    let mut after = Vec::new();
    for name in AFTER_JUMP {
        let Some(value) = take(name) else { continue };
        let text = value.to_str();
        after.push(if is_blank(&value) {
            format!("--{name}")
        } else if text.contains(char::is_whitespace) {
            format!("--{name} \"{text}\"")
        } else {
            format!("--{name} {text}")
        });
    }
    for (name, value) in &args {
        let name = name.to_str();
        if name.starts_with("__") {
            continue;
        }
        let dashes = if name.chars().count() == 1 { "-" } else { "--" };
        let (sign, text) = negated(&value.to_str());
        let text = if is_blank(&value) { String::new() } else { format!(" {text}") };
        rule.push(format!("{sign}{dashes}{name}{text}"));
    }
    rule.append(&mut after);
    Ok(rule.join(" "))
}

#[cfg(test)]
mod tests {
    use halite_value::yaml;

    use super::*;

    fn check(given: &str, expected: &str) {
        let Value::Dict(given) = yaml::load_str(given).unwrap() else { panic!("{given}") };
        assert_eq!(build(&given).unwrap_or_else(str::to_owned), expected);
    }

    #[test]
    fn parts_are_in_salts_order() {
        check(
            "{jump: ACCEPT, match: state, connstate: NEW, dport: 80, proto: tcp, sport: '1025:65535'}",
            "-p tcp -m state --state NEW --dport 80 --sport 1025:65535 --jump ACCEPT",
        );
        check("{source: '! 127.0.0.1', jump: DROP}", "! --source 127.0.0.1 --jump DROP");
        check(
            "{dports: [80, 443], proto: tcp, jump: ACCEPT}",
            "-p tcp -m multiport --dports 80,443 --jump ACCEPT",
        );
        check("{dports: 80}", "Error: protocol must be specified");
        check(
            "{comment: a b, jump: LOG, log-prefix: 'x y'}",
            "-m comment --comment \"a b\" --jump LOG --log-prefix \"x y\"",
        );
        check("{if: lo, name: n, table: filter, chain: INPUT, save: true}", "-i lo");
    }
}
