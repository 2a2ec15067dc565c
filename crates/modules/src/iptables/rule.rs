//! Rules of `iptables`, made from the names and values of a state.
//!
//! Every argument becomes pieces of text on its own ([`pieces`]); where a piece stands is a
//! property of the argument's name ([`PLACES`]), so a rule is its pieces sorted by [`Slot`]. What
//! the table does not know (`source`, `icmp-type` …) goes between the matches and the target, in
//! the order given. A rule is a text, because users see it; it is taken apart into words again
//! before it is run.

use halite_value::{Dict, Value};

/// Where a piece stands in a rule. The declaration order is the order on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    In,
    Out,
    Protocol,
    Match,
    /// The protocol `-m policy` looks at, which is not the packet's.
    PolicyProtocol,
    Set,
    State,
    Port,
    SourcePort,
    Ports,
    SourcePorts,
    Comment,
    OldSet,
    /// What the table does not know.
    Other,
    Jump,
    /// Options of targets, which `iptables` accepts only behind `--jump`.
    TargetOption,
    /// The same, of targets that are for IPv6 or came later.
    TargetOption6,
    /// The same, of the targets in xtables-addons.
    AddonOption,
}

/// How the value of an argument becomes text.
#[derive(Clone, Copy, Debug)]
enum Rendering {
    /// Nothing: the word belongs to the state, not to the rule.
    Nowhere,
    /// `option value`, with `!` before it if the value begins so.
    Option(&'static str),
    /// The same, if there is a value at all.
    OptionIfAny(&'static str),
    /// `-m` for each of the matches named.
    Matches,
    /// `-m set --match-set` for each of the sets named.
    Sets,
    /// `--state a,b` of the match `state`.
    States,
    /// A list of ports of the match `multiport`.
    Ports(&'static str),
    /// Text in quotes of the match `comment`.
    Comment,
    /// `--name value`, in quotes if need be, never negated.
    Target,
    /// `-x value` or `--name value`, perhaps negated.
    Plain,
}

use Rendering::{Comment, Matches, Nowhere, Option as Opt, OptionIfAny, Ports, Sets, States};
use Slot::{AddonOption, TargetOption, TargetOption6};

/// What is special about a name; sorted by name.
const PLACES: &[(&str, Slot, Rendering)] = &[
    ("chain", Slot::Other, Nowhere),
    ("command", Slot::Other, Nowhere),
    ("comment", Slot::Comment, Comment),
    ("connstate", Slot::State, States),
    ("dport", Slot::Port, Opt("--dport")),
    ("dports", Slot::Ports, Ports("--dports")),
    ("family", Slot::Other, Nowhere),
    ("full", Slot::Other, Nowhere),
    ("if", Slot::In, Opt("-i")),
    ("j", Slot::Jump, Rendering::Target),
    ("jump", Slot::Jump, Rendering::Target),
    ("match", Slot::Match, Matches),
    ("match-set", Slot::Set, Sets),
    ("name", Slot::Other, Nowhere),
    ("of", Slot::Out, Opt("-o")),
    ("position", Slot::Other, Nowhere),
    ("protocol", Slot::Protocol, Opt("-p")),
    ("rules", Slot::Other, Nowhere),
    ("save", Slot::Other, Nowhere),
    ("set", Slot::OldSet, OptionIfAny("--match-set")),
    ("sport", Slot::SourcePort, Opt("--sport")),
    ("sports", Slot::SourcePorts, Ports("--sports")),
    ("state", Slot::Other, Nowhere),
    ("table", Slot::Other, Nowhere),
];

/// The options of targets, words of a text for each slot.
const TARGET_OPTIONS: &[(Slot, &str)] = &[
    (
        TargetOption,
        "add-set and-mark and-tos checksum-fill clamp-mss-to-pmtu clustermac ctevents ctmask \
         del-set ecn-tcp-remove exist expevents gateway hash-init hashmode helper label \
         local-node log-ip-options log-level log-prefix log-tcp-options log-tcp-sequence \
         log-uid map-set mask mss new nflog-group nflog-prefix nflog-range nflog-threshold \
         nfmask nodst notrack on-ip on-port or-mark or-tos persistent queue-balance \
         queue-bypass queue-num random random-fully rateest-ewmalog rateest-interval \
         rateest-name reject-with restore restore-mark sack-perm save-mark selctx set-class \
         set-dscp set-dscp-class set-mark set-mss set-tos set-xmark strip-options timeout \
         timestamp to to-destination to-ports to-source total-nodes tproxy-mark ttl-dec \
         ttl-inc ttl-set type ulog-cprange ulog-nlgroup ulog-prefix ulog-qthreshold wscale \
         xor-mark xor-tos zone zone-orig zone-reply",
    ),
    (
        TargetOption6,
        "dst-pfx hl-dec hl-inc hl-set hmark-dport-mask hmark-dst-prefix hmark-mod \
         hmark-offset hmark-proto-mask hmark-rnd hmark-spi-mask hmark-sport-mask \
         hmark-src-prefix hmark-tuple led-always-blink led-delay led-trigger-id \
         queue-cpu-fanout src-pfx to-port",
    ),
    (
        AddonOption,
        "addr and-mask delude honeypot or-mask prefix reset reuse set-mac shift static tarpit \
         tname ttl",
    ),
];

/// A part of a rule, with its place.
struct Piece {
    slot: Slot,
    text: String,
    /// A match that another argument needs; left out if the user asked for it already.
    implied: bool,
}

/// Takes `!` or `not` off the front.
fn negated(value: &str) -> (&'static str, String) {
    let rest = ["!", "not"].iter().find_map(|sign| value.strip_prefix(sign));
    match rest {
        Some(rest) => ("! ", rest.strip_prefix(' ').unwrap_or(rest).to_owned()),
        None => ("", value.to_owned()),
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// One value, or each of a list.
fn each(value: &Value) -> Vec<String> {
    let items = value.items_of_sequence().unwrap_or_else(|| vec![value.clone()]);
    items.iter().map(Value::to_string).collect()
}

fn option(name: &str, value: &str) -> String {
    let (sign, value) = negated(value);
    format!("{sign}{name} {value}")
}

/// Place and rendering of a name.
fn placed(name: &str) -> (Slot, Rendering) {
    if let Ok(at) = PLACES.binary_search_by_key(&name, |(own, _, _)| own) {
        let (_, slot, rendering) = PLACES[at];
        return (slot, rendering);
    }
    let own = TARGET_OPTIONS.iter().find(|(_, names)| names.split(' ').any(|own| own == name));
    own.map_or((Slot::Other, Rendering::Plain), |(slot, _)| (*slot, Rendering::Target))
}

/// Renders one argument.
fn pieces(name: &str, value: &Value, args: &Arguments) -> Vec<Piece> {
    let (slot, rendering) = placed(name);
    let piece = |text: String| Piece { slot, text, implied: false };
    let implied = |module: &str| Piece { slot, text: format!("-m {module}"), implied: true };
    match rendering {
        Rendering::Nowhere => Vec::new(),
        Rendering::Option(option_name) => vec![piece(option(option_name, &value.to_str()))],
        Rendering::OptionIfAny(_) if !value.truthy() => Vec::new(),
        Rendering::OptionIfAny(option_name) => vec![piece(option(option_name, &value.to_str()))],
        Rendering::Matches => {
            let mut own_name = args.match_name.as_ref();
            let mut pieces = Vec::new();
            for module in args.matches() {
                pieces.push(piece(format!("-m {module}")));
                if has_name(&module)
                    && let Some(own) = own_name.take()
                {
                    pieces.push(piece(format!("--name {own}")));
                }
            }
            pieces
        }
        Rendering::Sets => {
            let set = |set: &String| {
                let (sign, set) = negated(set);
                piece(format!("-m set {sign}--match-set {set}"))
            };
            each(value).iter().map(set).collect()
        }
        Rendering::States => {
            vec![implied("state"), piece(option("--state", &each(value).join(",")))]
        }
        Rendering::Ports(option_name) => {
            let (signs, ports): (Vec<&str>, Vec<String>) =
                each(value).iter().map(|port| negated(port)).unzip();
            let not = signs.iter().any(|sign| !sign.is_empty()).then(|| piece("!".into()));
            let list = piece(format!("{option_name} {}", ports.join(",")));
            [implied("multiport")].into_iter().chain(not).chain([list]).collect()
        }
        Rendering::Comment => {
            vec![implied("comment"), piece(format!("--comment \"{value}\""))]
        }
        Rendering::Target => {
            let text = value.to_str();
            let quote = if text.contains(char::is_whitespace) { "\"" } else { "" };
            vec![piece(if is_blank(value) {
                format!("--{name}")
            } else {
                format!("--{name} {quote}{text}{quote}")
            })]
        }
        Rendering::Plain => {
            let dashes = if name.chars().count() == 1 { "-" } else { "--" };
            let (sign, text) = negated(&value.to_str());
            let text = if is_blank(value) { String::new() } else { format!(" {text}") };
            vec![piece(format!("{sign}{dashes}{name}{text}"))]
        }
    }
}

/// Matches that keep a list under a name of its own, given as `name_` since `name` is the state's.
fn has_name(module: &str) -> bool {
    matches!(module.trim(), "pknock" | "quota2" | "recent")
}

/// The arguments, after the few that mean something else in company are sorted out.
struct Arguments {
    named: Dict,
    /// `proto` of `-m policy`.
    policy_protocol: Option<Value>,
    /// `name_`, where one of the matches takes it.
    match_name: Option<Value>,
}

impl Arguments {
    fn of(given: &Dict) -> Self {
        let named = given.shallow_copy();
        if let Some(target) = named.remove("target") {
            named.insert("jump", target);
        }
        let mut args = Self { named, policy_protocol: None, match_name: None };
        if args.named.get("match").is_some_and(|own| own == "policy") {
            args.policy_protocol = args.named.remove("proto");
        } else if let Some(protocol) = args.named.remove("proto") {
            args.named.insert("protocol", protocol);
        }
        if args.matches().iter().any(|module| has_name(module)) {
            args.match_name = args.named.remove("name_");
        }
        args
    }

    fn matches(&self) -> Vec<String> {
        let Some(matches) = self.named.get("match") else { return Vec::new() };
        match matches.items_of_sequence() {
            Some(_) => each(&matches),
            None => matches.to_str().split(',').map(str::to_owned).collect(),
        }
    }
}

/// Builds a rule; the error is what users are told.
pub fn build(given: &Dict) -> Result<String, &'static str> {
    let args = Arguments::of(given);
    let mut parts: Vec<(Slot, String, Piece)> = Vec::new();
    for (name, value) in &args.named {
        let name = name.to_str();
        if name.starts_with("__") {
            continue;
        }
        // Options of a target stand in the order of the alphabet, everything else as given.
        let key = if placed(&name).0 > Slot::Other { name.to_string() } else { String::new() };
        let own = pieces(&name, &value, &args);
        parts.extend(own.into_iter().map(|piece| (piece.slot, key.clone(), piece)));
    }
    if let Some(value) = &args.policy_protocol {
        let (slot, text) = (Slot::PolicyProtocol, option("--proto", &value.to_str()));
        parts.push((slot, String::new(), Piece { slot, text, implied: false }));
    }
    parts.sort_by(|(slot, name, _), (other, other_name, _)| (slot, name).cmp(&(other, other_name)));
    let knows_protocol = args.named.contains("protocol");
    let mut rule: Vec<String> = Vec::new();
    for (_, _, piece) in parts {
        if piece.implied && rule.contains(&piece.text) {
            continue;
        }
        if piece.implied && piece.text == "-m multiport" && !knows_protocol {
            return Err("Error: protocol must be specified");
        }
        rule.push(piece.text);
    }
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
    fn parts_are_sorted_by_slot() {
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
        check("{match: recent, name_: x, set: ''}", "-m recent --name x");
        check("{match: policy, proto: esp, dir: in}", "-m policy --proto esp --dir in");
        check("{match: multiport, dports: ['!1', 2]}", "-m multiport ! --dports 1,2");
        check(
            "{ttl: 1, to-port: 2, queue-num: 3, s: '!4', j: Q}",
            "! -s 4 --j Q --queue-num 3 --to-port 2 --ttl 1",
        );
        check("{if: lo, name: n, table: filter, chain: INPUT, save: true}", "-i lo");
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(PLACES.is_sorted_by_key(|(name, _, _)| name));
    }
}
