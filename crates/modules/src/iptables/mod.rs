//! `iptables`: packet filter rules.
//!
//! `rule.rs` builds rules. What is in force is read with `iptables-save` and `iptables -C`, changed
//! with `iptables`, kept in the file the distribution's start scripts read. Rules are taken apart
//! into words here; no shell ever sees them.

mod rule;

use std::path::Path;

use halite_spec::{Command, Cx, Error, Need, Output, Rest, Result, function, host::Write, module};
use halite_value::{Dict, List, Value, dict};

pub use self::rule::build;
use crate::cmd::shlex;

module! {
    /// Packet filter rules.
    "iptables", needs = [
        Need::program(&["iptables"], "The iptables execution module cannot be loaded: iptables not installed."),
    ]: version, build_rule, get_rules, get_saved_rules, get_policy, get_saved_policy,
    set_policy, save, check, check_chain, new_chain, delete_chain, append, insert, delete, flush,
}

fn program(family: &str) -> &'static str {
    if family == "ipv6" { "ip6tables" } else { "iptables" }
}

fn run(cx: &Cx, family: &str, words: &[&str], rule: &str, looks: bool) -> Result<Output> {
    if cx.host.which(program(family)).is_none() {
        return Err(Error::failed(format!("Command '{}' cannot be found", program(family))));
    }
    let rule = shlex::split(rule).map_err(Error::invalid)?;
    // `--wait` since 1.4.20: another program may hold the lock.
    let line =
        [program(family), "--wait"].into_iter().chain(words.iter().copied()).map(str::to_owned);
    let command = Command::line(line.chain(rule));
    let output = cx.host.run(&if looks { command.query() } else { command })?;
    cx.job.set_retcode(output.code.into());
    Ok(output)
}

/// What a changing command complained of; empty if nothing.
fn complaint(cx: &Cx, family: &str, words: &[&str], rule: &str) -> Result<String> {
    let output = run(cx, family, words, rule, false)?;
    let text = output.stderr_text().trim_end().to_owned();
    Ok(if text.is_empty() && !output.ok() { format!("exit code {}", output.code) } else { text })
}

/// The file rules are kept in.
fn conf(cx: &Cx, family: &str) -> Result<&'static str> {
    let six = family == "ipv6";
    Ok(match cx.grain_str("os_family").as_str() {
        "RedHat" if six => "/etc/sysconfig/ip6tables",
        "RedHat" => "/etc/sysconfig/iptables",
        "Arch" if six => "/etc/iptables/ip6tables.rules",
        "Arch" => "/etc/iptables/iptables.rules",
        "Debian" if six => "/etc/iptables/rules.v6",
        "Debian" => "/etc/iptables/rules.v4",
        "Gentoo" if six => "/var/lib/ip6tables/rules-save",
        "Gentoo" => "/var/lib/iptables/rules-save",
        "Suse" => "/etc/sysconfig/scripts/SuSEfirewall2-custom",
        "Void" => "/etc/iptables/iptables.rules",
        "Alpine" if six => "/etc/iptables/rules6-save",
        "Alpine" => "/etc/iptables/rules-save",
        other => {
            return Err(Error::failed(format!(
                "Saving iptables to file is not supported on {other}. Please file an issue with SaltStack"
            )));
        }
    })
}

/// Takes a rule apart: option → values. Salt has its own names for some options.
fn parts_of(rule: &str) -> Dict {
    let ret = Dict::new();
    let words = shlex::split(rule).unwrap_or_default();
    let mut name = String::new();
    let mut not = false;
    for word in words {
        if word == "!" {
            not = true;
        } else if let Some(long) = word.strip_prefix("--") {
            name = match long {
                "dport" | "destination-port" => "destination_port",
                "sport" | "source-port" => "source_port",
                "dports" => "destination-ports",
                "sports" => "source-ports",
                other => other,
            }
            .to_owned();
            ret.get_or_insert_with(name.as_str(), || List::new().into());
        } else if let Some(short) = word.strip_prefix('-').filter(|_| word.len() == 2) {
            name = match short {
                "p" => "protocol",
                "s" => "source",
                "d" => "destination",
                "j" => "jump",
                "g" => "goto",
                "i" => "in-interface",
                "o" => "out-interface",
                "m" => "match",
                "f" => "fragment",
                other => other,
            }
            .to_owned();
            ret.get_or_insert_with(name.as_str(), || List::new().into());
        } else if let Some(Value::List(values)) = ret.get(name.as_str()) {
            values.push(if not { format!("! {word}") } else { word });
            not = false;
        }
    }
    ret
}

/// Reads the output of `iptables-save`: table, chain, then policy, counters and rules.
pub fn read_saved(text: &str) -> Dict {
    let tables = Dict::new();
    let mut table = Dict::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = Dict::new();
            tables.insert(name, &table);
        } else if let Some(rest) = line.strip_prefix(':') {
            let mut words = rest.split_whitespace();
            let (name, policy) =
                (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let counts = words.next().unwrap_or_default().trim_matches(['[', ']']);
            let (packets, bytes) = counts.split_once(':').unwrap_or(("0", "0"));
            table.insert(
                name,
                dict! {
                    "policy" => policy, "packet count" => packets, "byte count" => bytes,
                    "rules" => List::new(), "rules_comment" => Value::dict(),
                },
            );
        } else if let Some(rest) = line.strip_prefix("-A ") {
            let (name, rule) = rest.split_once(' ').unwrap_or((rest, ""));
            if let Some(Value::List(rules)) = table.get(name).and_then(|chain| chain.get("rules")) {
                let taken_apart = parts_of(rule);
                let comment = taken_apart.get("comment").and_then(|list| list.items_of_sequence());
                rules.push(&taken_apart);
                let notes = table.get(name).and_then(|chain| chain.get("rules_comment"));
                if let (Some(comment), Some(Value::Dict(notes))) = (comment, notes)
                    && let Some(comment) = comment.first()
                {
                    notes.insert(comment.to_str(), &taken_apart);
                }
            }
        }
    }
    tables
}

fn saved_text(cx: &Cx, family: &str) -> Result<String> {
    let line = format!("{}-save", program(family));
    Ok(cx.host.run(&Command::line([line]).query())?.stdout_text())
}

/// Return the version of iptables.
///
/// ```console
/// $ salt web1 iptables.version
/// ```
#[function]
pub fn version(
    cx: &Cx,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<String> {
    let output = cx.host.run(&Command::line([program(&family), "--version"]).query())?;
    Ok(output.stdout_text().split_whitespace().nth(1).unwrap_or_default().to_owned())
}

/// The program's path, as messages show it; the usual one where there is none.
pub fn path_of(cx: &Cx, family: &str) -> String {
    let path = cx.host.which(program(family));
    path.map_or_else(|| format!("/usr/sbin/{}", program(family)), |path| path.display().to_string())
}

/// The whole command line, as messages show it.
pub fn shown(
    path: &str,
    table: &str,
    command: &str,
    chain: &str,
    position: &str,
    rule: &str,
) -> String {
    format!("{path} --wait -t {table} -{command} {chain} {position} {rule}").trim().to_owned()
}

/// Return a rule made from names and values.
///
/// ```console
/// $ salt web1 iptables.build_rule match=tcp dport=8443 jump=ACCEPT
/// ```
#[function]
pub fn build_rule(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The letter of the command.
    command: Option<String>,
    /// The position.
    #[default(Value::from(""))]
    position: Value,
    /// Return the whole command line.
    full: Option<Value>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
    /// The parts of the rule.
    kwargs: Rest,
) -> Result<String> {
    let rule = match build(&kwargs.kwargs) {
        Ok(rule) => rule,
        Err(text) => return Ok(text.into()),
    };
    if !full.is_some_and(|full| full.truthy()) {
        return Ok(rule);
    }
    Ok(match (chain, command) {
        (None, _) => "Error: Chain needs to be specified".into(),
        (_, None) => "Error: Command needs to be specified".into(),
        (Some(chain), Some(command)) => {
            shown(&path_of(cx, &family), &table, &command, &chain, &position.to_str(), &rule)
        }
    })
}

/// Return the rules in force.
///
/// ```console
/// $ salt web1 iptables.get_rules
/// ```
#[function]
pub fn get_rules(
    cx: &Cx,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    Ok(read_saved(&saved_text(cx, &family)?))
}

/// Return the rules kept.
///
/// ```console
/// $ salt web1 iptables.get_saved_rules
/// ```
#[function]
pub fn get_saved_rules(
    cx: &Cx,
    /// The file.
    conf_file: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let path = match &conf_file {
        Some(path) => path.as_str(),
        None => conf(cx, &family)?,
    };
    Ok(read_saved(&cx.host.read_text_if_there(Path::new(path))?.unwrap_or_default()))
}

fn policy_in(rules: &Dict, table: &str, chain: &str) -> Option<Value> {
    rules.get(table)?.get(chain)?.get("policy")
}

/// Return the policy of a chain.
///
/// ```console
/// $ salt web1 iptables.get_policy filter FORWARD
/// ```
#[function]
pub fn get_policy(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Option<Value>> {
    let Some(chain) = chain else { return Ok(Some("Error: Chain needs to be specified".into())) };
    Ok(policy_in(&get_rules(cx, family)?, &table, &chain))
}

/// Return the policy of a chain, as kept.
///
/// ```console
/// $ salt web1 iptables.get_saved_policy
/// ```
#[function]
pub fn get_saved_policy(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The file.
    conf_file: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Option<Value>> {
    let Some(chain) = chain else { return Ok(Some("Error: Chain needs to be specified".into())) };
    Ok(policy_in(&get_saved_rules(cx, conf_file, family)?, &table, &chain))
}

/// Set the policy of a chain; returns what iptables complained of.
///
/// ```console
/// $ salt web1 iptables.set_policy filter FORWARD DROP
/// ```
#[function]
pub fn set_policy(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The policy.
    policy: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<String> {
    let Some(chain) = chain else { return Ok("Error: Chain needs to be specified".into()) };
    let Some(policy) = policy else { return Ok("Error: Policy needs to be specified".into()) };
    complaint(cx, &family, &["-t", &table, "-P", &chain, &policy], "")
}

/// Keep the rules in force.
///
/// ```console
/// $ salt '*' iptables.save
/// ```
#[function]
pub fn save(
    cx: &Cx,
    /// The file.
    filename: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<String> {
    let path = match &filename {
        Some(path) => path.as_str(),
        None => conf(cx, &family)?,
    };
    let text = saved_text(cx, &family)?;
    if let Some(folder) = Path::new(path).parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(Path::new(path), text.as_bytes(), &Write::default())?;
    Ok(format!("Wrote 1 lines to \"{path}\""))
}

/// Tell whether a rule is in force.
///
/// ```console
/// $ salt web1 iptables.check filter INPUT '-p tcp --dport 8443 -j ACCEPT'
/// ```
#[function]
pub fn check(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let Some(chain) = chain else { return Ok("Error: Chain needs to be specified".into()) };
    let Some(rule) = rule.filter(|rule| !rule.is_empty()) else {
        return Ok("Error: Rule needs to be specified".into());
    };
    Ok(run(cx, &family, &["-t", &table, "-C", &chain], &rule, true)?.ok().into())
}

/// Tell whether a chain is there.
///
/// ```console
/// $ salt web1 iptables.check_chain filter SHOP
/// ```
#[function]
pub fn check_chain(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let Some(chain) = chain else { return Ok("Error: Chain needs to be specified".into()) };
    let line = [format!("{}-save", program(&family)), "-t".into(), table];
    let text = cx.host.run(&Command::line(line).query())?.stdout_text();
    Ok(text.contains(&format!(":{chain} ")).into())
}

fn true_or(text: String) -> Value {
    if text.is_empty() { true.into() } else { text.into() }
}

/// Make a chain. Returns True, or a text that says why not.
///
/// ```console
/// $ salt web1 iptables.new_chain filter SHOP
/// ```
#[function]
pub fn new_chain(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let Some(chain) = chain else { return Ok("Error: Chain needs to be specified".into()) };
    complaint(cx, &family, &["-t", &table, "-N", &chain], "").map(true_or)
}

/// Remove a chain. Returns True, or a text that says why not.
///
/// ```console
/// $ salt web1 iptables.delete_chain filter SHOP
/// ```
#[function]
pub fn delete_chain(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let Some(chain) = chain else { return Ok("Error: Chain needs to be specified".into()) };
    complaint(cx, &family, &["-t", &table, "-X", &chain], "").map(true_or)
}

/// Append a rule; False if it is there already or was refused.
///
/// ```console
/// $ salt web1 iptables.append filter INPUT '-p tcp --dport 8443 -j ACCEPT'
/// ```
#[function]
pub fn append(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    match check(cx, table.clone(), chain.clone(), rule.clone(), family.clone())? {
        Value::Bool(true) => Ok(false.into()),
        Value::Bool(false) => {
            let (chain, rule) = (chain.unwrap_or_default(), rule.unwrap_or_default());
            let text = complaint(cx, &family, &["-t", &table, "-A", &chain], &rule)?;
            Ok(text.is_empty().into())
        }
        error => Ok(error),
    }
}

/// Insert a rule; returns what iptables complained of.
///
/// ```console
/// $ salt '*' iptables.insert filter INPUT position=3 rule='-m state --state ESTABLISHED -j ACCEPT'
/// ```
#[function]
pub fn insert(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The position; a negative one counts from the end.
    position: Option<i64>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let Some(chain) = chain else { return Ok("Error: Chain needs to be specified".into()) };
    let Some(mut position) = position.filter(|position| *position != 0) else {
        return Ok("Error: Position needs to be specified or use append (-A)".into());
    };
    match check(cx, table.clone(), Some(chain.clone()), rule.clone(), family.clone())? {
        Value::Bool(true) => return Ok(false.into()),
        Value::Bool(false) => {}
        error => return Ok(error),
    }
    if position < 0 {
        let all = get_rules(cx, family.clone())?;
        let rules = all
            .get(table.as_str())
            .and_then(|own| own.get(&chain))
            .and_then(|own| own.get("rules"));
        let size =
            rules.and_then(|rules| rules.items_of_sequence()).unwrap_or_default().len() as i64;
        position = (size + position + 1).max(1);
    }
    let at = position.to_string();
    let text =
        complaint(cx, &family, &["-t", &table, "-I", &chain, &at], &rule.unwrap_or_default())?;
    Ok(text.into())
}

/// Delete a rule, by itself or by position; returns what iptables complained of.
///
/// ```console
/// $ salt web1 iptables.delete filter INPUT 2
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The table.
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The position.
    position: Option<i64>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<String> {
    let rule = match (position, rule) {
        (Some(_), Some(_)) => {
            return Ok("Error: Only specify a position or a rule, not both".into());
        }
        (Some(position), None) => position.to_string(),
        (None, rule) => rule.unwrap_or_default(),
    };
    complaint(cx, &family, &["-t", &table, "-D", &chain.unwrap_or_default()], &rule)
}

/// Delete all rules of a chain, or of a table; returns what iptables complained of.
///
/// ```console
/// $ salt web1 iptables.flush filter SHOP
/// ```
#[function]
pub fn flush(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain; all of the table if none is given.
    #[default(String::new())]
    chain: String,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<String> {
    complaint(cx, &family, &["-t", &table, "-F"], &chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_rules() {
        let text = "*filter\n:INPUT ACCEPT [5:320]\n:X - [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n";
        let rules = read_saved(text);
        assert_eq!(policy_in(&rules, "filter", "INPUT").unwrap(), "ACCEPT");
        let chain = rules.get("filter").unwrap().get("INPUT").unwrap();
        assert_eq!(
            chain.get("rules").unwrap().repr(),
            "[{'in-interface': ['lo'], 'jump': ['ACCEPT']}]"
        );
        assert_eq!(chain.get_str("packet count").unwrap(), "5");
    }

    #[test]
    fn rules_are_taken_apart() {
        let rule = "! -s 10.0.0.0/8 -p tcp -m tcp --sport 5 -m comment --comment \"a b\" -j ACCEPT";
        assert_eq!(
            Value::from(parts_of(rule)).repr(),
            "{'source': ['! 10.0.0.0/8'], 'protocol': ['tcp'], 'match': ['tcp', 'comment'], \
             'source_port': ['5'], 'comment': ['a b'], 'jump': ['ACCEPT']}"
        );
    }
}
