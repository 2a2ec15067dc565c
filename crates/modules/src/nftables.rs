//! `nftables`: packet filter rules of the newer kind, over `nft`.
//!
//! Functions answer with a dict of `result` and `comment`, as Salt's do. Rules are compared with the
//! listing of the chain, where nft writes a set of one without its braces.

use std::path::Path;

use halite_spec::{Command, Cx, Error, Need, Output, Rest, Result, function, host::Write, module};
use halite_value::{Dict, Value, entries, json};

module! {
    /// Packet filter rules of the newer kind.
    "nftables", needs = [
        Need::program(&["nft"], "The nftables execution module failed to load: nftables is not installed."),
    ]: version, build_rule, list_tables, get_rules, get_rules_json, get_saved_rules,
    save, get_rule_handle, check, check_table, check_chain, new_table, delete_table, new_chain,
    delete_chain, append, insert, delete, flush, get_policy, set_policy,
}

fn family_of(family: &str) -> &str {
    match family {
        "ipv4" => "ip",
        "ipv6" => "ip6",
        other => other,
    }
}

fn run(cx: &Cx, words: &[&str], looks: bool) -> Result<Output> {
    if cx.host.which("nft").is_none() {
        return Err(Error::failed("Command 'nft' cannot be found"));
    }
    let command = Command::line(["nft"].into_iter().chain(words.iter().copied()));
    Ok(cx.host.run(&if looks { command.query() } else { command })?)
}

/// `{"result": …, "comment": …}`
fn said(result: bool, comment: impl Into<String>) -> Dict {
    entries! { "result" => result, "comment" => comment.into() }
}

fn is_true(answer: &Dict) -> bool {
    answer.get("result").is_some_and(|result| result.truthy())
}

/// Listings as they are kept: numbers, not the names of this machine.
const NUMERIC: [&str; 4] = ["--numeric", "--numeric", "--numeric", "list"];

/// Ports, whose ranges iptables writes with a colon.
fn ports_of(value: &Value) -> String {
    set_of(value).replace(':', "-")
}

/// A set as nft writes it: `{ 80,443 }`.
fn set_of(value: &Value) -> String {
    let items = match value.items_of_sequence() {
        Some(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        None => value.to_string(),
    };
    format!("{{ {items} }}")
}

/// Makes a rule of names and values; an error text when they do not fit together.
pub fn build(family: &str, kwargs: &Dict) -> Result<String, String> {
    let get = |name: &str| kwargs.get(name).filter(Value::truthy);
    let words = family_of(family);
    let mut rule = String::new();
    let mut add = |text: String| {
        rule += &text;
        rule.push(' ');
    };
    let port = ["dport", "sport", "dports", "sports", "destination-ports", "source-ports"];
    let proto = get("proto").or_else(|| get("protocol")).map(|proto| proto.to_string());
    if proto.is_none() && port.iter().any(|name| get(name).is_some()) {
        return Err("Error: proto must be specified".into());
    }
    for (name, word) in [("if", "meta iifname"), ("of", "meta oifname")] {
        if let Some(value) = get(name) {
            add(format!("{word} {value}"));
        }
    }
    if let Some(state) = get("connstate") {
        add(format!("ct state {}", set_of(&state)));
    }
    if get("counter").is_some() {
        add("counter".into());
    }
    for (names, word) in [(["saddr", "source"], "saddr"), (["daddr", "destination"], "daddr")] {
        if let Some(value) = names.iter().find_map(|name| get(name)) {
            let value = value.to_string();
            let value = match value.strip_prefix('!') {
                Some(value) => format!("!= {}", value.trim()),
                None => value,
            };
            add(format!("{words} {word} {value}"));
        }
    }
    if let Some(proto) = &proto {
        let mut ports = false;
        for (names, word) in [
            (["dport", "dports", "destination-ports"], "dport"),
            (["sport", "sports", "source-ports"], "sport"),
        ] {
            if let Some(value) = names.iter().find_map(|name| get(name)) {
                ports = true;
                add(format!("{proto} {word} {}", ports_of(&value)));
            }
        }
        if let Some(kind) = get("icmp-type") {
            ports = true;
            add(format!("icmp type {}", set_of(&kind)));
        }
        if !ports {
            add(format!("{words} protocol {proto}"));
        }
    }
    if get("log").is_some() || get("log-prefix").is_some() {
        let prefix = get("log-prefix").map(|prefix| format!(" prefix \"{prefix}\""));
        add(format!("log{}", prefix.unwrap_or_default()));
    }
    if let Some(jump) = get("jump").or_else(|| get("j")) {
        add(jump.to_string());
    }
    for (name, word) in [
        ("to-source", "snat"),
        ("to-destination", "dnat"),
        ("redirect-to", "redirect to"),
        ("to-ports", "redirect to"),
        ("reject-with", "reject with"),
    ] {
        if let Some(value) = get(name) {
            add(format!("{word} {value}"));
        }
    }
    Ok(rule.trim().to_owned())
}

/// Rules as nft lists them: one blank between words, sets of one without braces.
fn plain(rule: &str) -> String {
    let mut words: Vec<&str> = rule.split_whitespace().filter(|word| *word != "ip").collect();
    words.retain(|word| *word != "{" && *word != "}");
    words.join(" ").replace(", ", ",")
}

/// The rules of a chain with their handles.
fn rules_of(cx: &Cx, table: &str, chain: &str, family: &str) -> Result<Vec<(String, String)>> {
    let words = ["--handle", "list", "chain", family_of(family), table, chain];
    let text = run(cx, &words, true)?.stdout_text();
    let rules = text.lines().filter_map(|line| line.trim().rsplit_once(" # handle "));
    Ok(rules.map(|(rule, handle)| (rule.to_owned(), handle.trim().to_owned())).collect())
}

/// The words of a rule: nft reads them joined, but none may be taken for an option.
fn rule_words(rule: &str) -> Result<Vec<String>> {
    crate::cmd::shlex::split(rule).map_err(Error::invalid)
}

/// Return the version of nft.
///
/// ```console
/// $ salt web1 nftables.version
/// ```
#[function]
pub fn version(cx: &Cx) -> Result<String> {
    let text = run(cx, &["--version"], true)?.stdout_text();
    Ok(text.split_whitespace().nth(1).unwrap_or_default().to_owned())
}

/// Return a rule made from names and values.
///
/// ```console
/// $ salt web1 nftables.build_rule table=filter chain=input match=state jump=drop
/// ```
#[function]
pub fn build_rule(
    _cx: &Cx,
    /// The table.
    table: Option<String>,
    /// The chain.
    chain: Option<String>,
    /// `add` or `insert`.
    command: Option<String>,
    /// The position.
    #[default(Value::from(""))]
    position: Value,
    /// Return the whole command line.
    full: Option<Value>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
    /// The parts of the rule.
    kwargs: Rest,
) -> Result<Dict> {
    let rule = match build(&family, &kwargs.kwargs) {
        Ok(rule) => rule,
        Err(text) => return Ok(said(false, text)),
    };
    let whole = full.is_some_and(|full| full.truthy() && full.as_str() != Some("False"));
    let shown = if whole {
        let (Some(table), Some(chain), Some(command)) = (table, chain, command) else {
            return Ok(said(false, "Table, chain and command need to be specified"));
        };
        let position = match position.truthy() {
            true => format!("position {position} "),
            false => String::new(),
        };
        format!("nft {command} rule {} {table} {chain} {position}{rule}", family_of(&family))
    } else {
        rule
    };
    Ok(entries! { "comment" => "Successfully built rule", "rule" => shown, "result" => true })
}

/// Return the tables.
///
/// ```console
/// $ salt '*' nftables.list_tables family=ipv4
/// ```
#[function]
pub fn list_tables(
    cx: &Cx,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let text = run(cx, &["list", "tables", family_of(&family)], true)?.stdout_text();
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    Ok(Value::list(names.map(|name| entries! { "family" => family_of(&family), "name" => name })))
}

/// Return the rules of every table, one text each.
///
/// ```console
/// $ salt '*' nftables.get_rules family=ipv4
/// ```
#[function]
pub fn get_rules(
    cx: &Cx,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Vec<String>> {
    let family = family_of(&family);
    let text = run(cx, &["list", "tables", family], true)?.stdout_text();
    let mut found = Vec::new();
    for table in text.lines().filter_map(|line| line.split_whitespace().nth(2)) {
        found.push(
            run(cx, &[&NUMERIC[..], &["table", family, table]].concat(), true)?
                .stdout_text()
                .trim_end()
                .to_owned(),
        );
    }
    Ok(found)
}

/// Return the rules as nft gives them to programs.
///
/// ```console
/// $ salt '*' nftables.get_rules_json family=ipv4
/// ```
#[function]
pub fn get_rules_json(
    cx: &Cx,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Value> {
    let words =
        ["--numeric", "--numeric", "--numeric", "--json", "list", "ruleset", family_of(&family)];
    let text = run(cx, &words, true)?.stdout_text();
    let data = json::from_str(&text).map_err(|error| Error::failed(error.to_string()))?;
    Ok(data.get("nftables").unwrap_or_default())
}

/// Return the rules kept, line by line.
///
/// ```console
/// $ salt web1 nftables.get_saved_rules
/// ```
#[function]
pub fn get_saved_rules(
    cx: &Cx,
    /// The file.
    conf_file: Option<String>,
) -> Result<Vec<String>> {
    let path = conf_file.unwrap_or_else(|| "/etc/nftables.conf".into());
    let text = cx.host.read_text_if_there(Path::new(&path))?.unwrap_or_default();
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// Where rules are kept unless asked for elsewhere.
const RULES: &str = "/etc/nftables";

/// Keep the rules in force for the next start.
///
/// ```console
/// $ salt '*' nftables.save
/// ```
#[function]
pub fn save(
    cx: &Cx,
    /// The file.
    filename: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<String> {
    let _ = family;
    let path = match filename {
        Some(path) => path,
        // Where distributions keep a folder of rules, ours are a file in it.
        None if cx.host.is_dir(Path::new(RULES))? => format!("{RULES}/salt-all-in-one.nft"),
        None => RULES.to_owned(),
    };
    let text = run(cx, &[&NUMERIC[..], &["ruleset"]].concat(), true)?.stdout_text();
    let text = format!("#! nft -f\n\n{}\n", text.trim_end());
    if let Some(folder) = Path::new(&path).parent() {
        cx.host.create_dirs(folder, None)?;
    }
    cx.host.write(Path::new(&path), text.as_bytes(), &Write::default())?;
    Ok(text)
}

/// Return the number of a rule.
///
/// ```console
/// $ salt '*' nftables.get_rule_handle filter input rule='tcp dport 22 accept'
/// ```
#[function]
pub fn get_rule_handle(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let Some(rule) = rule else { return Ok(said(false, "Rule needs to be specified")) };
    let there = check(cx, table.clone(), Some(chain.clone()), Some(rule.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    let wanted = plain(&rule);
    for (own, handle) in rules_of(cx, &table, &chain, &family)? {
        if plain(&own) == wanted {
            return Ok(entries! { "result" => true, "handle" => handle });
        }
    }
    Ok(said(false, format!("Could not find rule {rule}")))
}

/// Tell whether a rule is in force.
///
/// ```console
/// $ salt '*' nftables.check filter input rule='tcp dport 22 accept'
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
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let Some(rule) = rule else { return Ok(said(false, "Rule needs to be specified")) };
    let there = check_table(cx, Some(table.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    let there = check_chain(cx, table.clone(), Some(chain.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    let wanted = plain(&rule);
    let found = rules_of(cx, &table, &chain, &family)?.iter().any(|(own, _)| plain(own) == wanted);
    let not = if found { "exists" } else { "does not exist" };
    let text = format!("Rule {rule} in chain {chain} in table {table} in family {family} {not}");
    Ok(said(found, text))
}

/// Tell whether there is a table.
///
/// ```console
/// $ salt web1 nftables.check_table shop
/// ```
#[function]
pub fn check_table(
    cx: &Cx,
    /// The table.
    table: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(table) = table else { return Ok(said(false, "Table needs to be specified")) };
    let text = run(cx, &["list", "tables", family_of(&family)], true)?.stdout_text();
    let found = text.lines().any(|line| line.split_whitespace().nth(2) == Some(&table));
    let word = if found { "exists" } else { "does not exist" };
    Ok(said(found, format!("Table {table} in family {family} {word}")))
}

/// Tell whether there is a chain.
///
/// ```console
/// $ salt web1 nftables.check_chain shop input
/// ```
#[function]
pub fn check_chain(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let text = run(cx, &["list", "table", family_of(&family), &table], true)?.stdout_text();
    let begin = format!("chain {chain} {{");
    let found = text.lines().any(|line| line.trim() == begin);
    let word = if found { "exists" } else { "does not exist" };
    Ok(said(found, format!("Chain {chain} in table {table} in family {family} {word}")))
}

/// The answer to an order: what was done, or what nft complained of.
fn ordered(output: &Output, done: String, failed: String) -> Dict {
    if output.ok() {
        return said(true, done);
    }
    let text = output.stderr_text();
    said(false, format!("{failed}\n{}", text.trim()).trim().to_owned())
}

/// Make a table.
///
/// ```console
/// $ salt web1 nftables.new_table shop
/// ```
#[function]
pub fn new_table(
    cx: &Cx,
    /// The table.
    table: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    if is_true(&check_table(cx, Some(table.clone()), family.clone())?) {
        return Ok(said(true, format!("Table {table} in family {family} exists")));
    }
    let output = run(cx, &["add", "table", family_of(&family), &table], false)?;
    let failed = format!("Table {table} in family {family} could not be created");
    Ok(ordered(&output, format!("Table {table} in family {family} created"), failed))
}

/// Remove a table.
///
/// ```console
/// $ salt web1 nftables.delete_table shop
/// ```
#[function]
pub fn delete_table(
    cx: &Cx,
    /// The table.
    table: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let there = check_table(cx, Some(table.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    let output = run(cx, &["delete", "table", family_of(&family), &table], false)?;
    let failed = format!("Table {table} in family {family} could not be deleted");
    Ok(ordered(&output, format!("Table {table} in family {family} deleted"), failed))
}

/// Make a chain.
///
/// ```console
/// $ salt web1 nftables.new_chain shop input table_type=filter hook=input priority=10
/// ```
#[function]
pub fn new_chain(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// What it filters: `filter`, `nat`, `route`.
    table_type: Option<String>,
    /// Where it hooks in.
    hook: Option<String>,
    /// In which order.
    priority: Option<Value>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let there = check_table(cx, Some(table.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    if is_true(&check_chain(cx, table.clone(), Some(chain.clone()), family.clone())?) {
        let text = format!("Chain {chain} in table {table} in family {family} already exists");
        return Ok(said(false, text));
    }
    let mut words = vec!["--", "add", "chain", family_of(&family), &table, &chain];
    let hooked;
    if table_type.is_some() || hook.is_some() || priority.is_some() {
        let (Some(kind), Some(hook), Some(priority)) = (table_type, hook, priority) else {
            return Ok(said(false, "Table_type, hook, and priority required."));
        };
        hooked = format!("{{ type {kind} hook {hook} priority {priority}; }}");
        words.push(&hooked);
    }
    let output = run(cx, &words, false)?;
    let what = format!("Chain {chain} in table {table} in family {family}");
    Ok(ordered(&output, format!("{what} created"), format!("{what} could not be created")))
}

/// Remove a chain.
///
/// ```console
/// $ salt web1 nftables.delete_chain shop input
/// ```
#[function]
pub fn delete_chain(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let there = check_chain(cx, table.clone(), Some(chain.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    let output = run(cx, &["delete", "chain", family_of(&family), &table, &chain], false)?;
    let what = format!("Chain {chain} in table {table} in family {family}");
    Ok(ordered(&output, format!("{what} deleted"), format!("{what} could not be deleted")))
}

/// Why a rule cannot be added: there is no such chain, or it is there already.
fn hindered(cx: &Cx, table: &str, chain: &str, rule: &str, family: &str) -> Result<Option<Dict>> {
    let [table, chain, family] = [table, chain, family].map(str::to_owned);
    let place = check_chain(cx, table.clone(), Some(chain.clone()), family.clone())?;
    if !is_true(&place) {
        return Ok(Some(place));
    }
    let text =
        format!("Rule {rule} chain {chain} in table {table} in family {family} already exists");
    let there = check(cx, table, Some(chain), Some(rule.to_owned()), family)?;
    Ok(is_true(&there).then(|| said(false, text)))
}

/// Append a rule to a chain.
///
/// ```console
/// $ salt '*' nftables.append filter input rule='tcp dport 22 accept'
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
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let Some(rule) = rule else { return Ok(said(false, "Rule needs to be specified")) };
    if let Some(hindered) = hindered(cx, &table, &chain, &rule, &family)? {
        return Ok(hindered);
    }
    let rule_words = rule_words(&rule)?;
    let mut words = vec!["add", "rule", family_of(&family), &table, &chain];

    words.extend(rule_words.iter().map(String::as_str));
    let output = run(cx, &words, false)?;
    let failed =
        format!("Failed to add rule \"{rule}\" chain {chain} in table {table} in family {family}.");
    let done = format!("Added rule \"{rule}\" chain {chain} in table {table} in family {family}.");
    Ok(ordered(&output, done, failed))
}

/// Insert a rule into a chain.
///
/// ```console
/// $ salt '*' nftables.insert filter input position=3 rule='tcp dport 22 accept'
/// ```
#[function]
pub fn insert(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// Before this rule.
    position: Option<Value>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let Some(rule) = rule else { return Ok(said(false, "Rule needs to be specified")) };
    if let Some(hindered) = hindered(cx, &table, &chain, &rule, &family)? {
        return Ok(hindered);
    }
    let rule_words = rule_words(&rule)?;
    let mut words = vec!["insert", "rule", family_of(&family), &table, &chain];
    let position = position.filter(Value::truthy).map(|position| position.to_string());
    if let Some(position) = &position {
        words.extend(["position", position]);
    }
    words.extend(rule_words.iter().map(String::as_str));
    let output = run(cx, &words, false)?;
    let failed =
        format!("Failed to add rule \"{rule}\" chain {chain} in table {table} in family {family}.");
    let done = format!("Added rule \"{rule}\" chain {chain} in table {table} in family {family}.");
    Ok(ordered(&output, done, failed))
}

/// Remove a rule from a chain, by number or by text.
///
/// ```console
/// $ salt web1 nftables.delete shop input position=2
/// ```
#[function]
pub fn delete(
    cx: &Cx,
    /// The table.
    table: String,
    /// The chain.
    chain: Option<String>,
    /// The number of the rule.
    position: Option<Value>,
    /// The rule.
    rule: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let Some(chain) = chain else { return Ok(said(false, "Chain needs to be specified")) };
    let handle = match (position.filter(Value::truthy), rule) {
        (Some(_), Some(_)) => {
            return Ok(said(false, "Only specify a position or a rule, not both"));
        }
        (Some(position), None) => position.to_string(),
        (None, Some(rule)) => {
            let found = get_rule_handle(
                cx,
                table.clone(),
                Some(chain.clone()),
                Some(rule),
                family.clone(),
            )?;
            match found.get("handle") {
                Some(handle) => handle.to_string(),
                None => return Ok(found),
            }
        }
        (None, None) => return Ok(said(false, "Rule needs to be specified")),
    };
    let words = ["delete", "rule", family_of(&family), &table, &chain, "handle", &handle];
    let output = run(cx, &words, false)?;
    let what = format!("handle {handle} in chain {chain} in table {table} in family {family}");
    Ok(ordered(&output, format!("Deleted rule {what}."), format!("Failed to delete rule {what}.")))
}

/// Remove all rules of a chain, or of a table.
///
/// ```console
/// $ salt web1 nftables.flush shop input
/// ```
#[function]
pub fn flush(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain; all unless given.
    #[default(String::new())]
    chain: String,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Dict> {
    let there = check_table(cx, Some(table.clone()), family.clone())?;
    if !is_true(&there) {
        return Ok(there);
    }
    let (output, what) = if chain.is_empty() {
        let output = run(cx, &["flush", "table", family_of(&family), &table], false)?;
        (output, format!("from table {table} in family {family}"))
    } else {
        let there = check_chain(cx, table.clone(), Some(chain.clone()), family.clone())?;
        if !is_true(&there) {
            return Ok(there);
        }
        let output = run(cx, &["flush", "chain", family_of(&family), &table, &chain], false)?;
        (output, format!("from chain {chain} in table {table} in family {family}"))
    };
    Ok(ordered(&output, format!("Flushed rules {what}."), format!("Failed to flush rules {what}.")))
}

/// `type filter hook input priority filter; policy accept;` of a chain.
fn hook_line(cx: &Cx, table: &str, chain: &str, family: &str) -> Result<Option<String>> {
    let words = ["list", "chain", family_of(family), table, chain];
    let text = run(cx, &words, true)?.stdout_text();
    let line = text.lines().map(str::trim).find(|line| line.starts_with("type "));
    Ok(line.map(str::to_owned))
}

/// Return what happens to packets no rule speaks of; nothing for other chains.
///
/// ```console
/// $ salt web1 nftables.get_policy shop input
/// ```
#[function]
pub fn get_policy(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<Option<String>> {
    let Some(chain) = chain else { return Ok(None) };
    let line = hook_line(cx, &table, &chain, &family)?.unwrap_or_default();
    let policy = line.split("policy ").nth(1).and_then(|rest| rest.split(';').next());
    Ok(policy.map(|policy| policy.trim().to_owned()))
}

/// Say what happens to packets no rule speaks of.
///
/// ```console
/// $ salt '*' nftables.set_policy filter input drop
/// ```
#[function]
pub fn set_policy(
    cx: &Cx,
    /// The table.
    #[default("filter".to_owned())]
    table: String,
    /// The chain.
    chain: Option<String>,
    /// `accept` or `drop`.
    policy: Option<String>,
    /// `ipv4`, `ipv6` or `inet`.
    #[default("ipv4".to_owned())]
    family: String,
) -> Result<bool> {
    let (Some(chain), Some(policy)) = (chain, policy) else {
        return Err(Error::invalid("Error: Chain and policy need to be specified"));
    };
    let Some(line) = hook_line(cx, &table, &chain, &family)? else { return Ok(false) };
    let hook = line.split(';').next().unwrap_or_default().to_owned();
    let body = format!("{{ {hook}; policy {policy}; }}");
    let words = ["add", "chain", family_of(&family), &table, &chain, &body];
    Ok(run(cx, &words, false)?.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_as_salt_does() {
        let rule = |kwargs: Dict| build("ipv4", &kwargs);
        let kwargs = entries! {
            "match" => "state", "connstate" => "related,established", "jump" => "accept",
        };
        assert_eq!(rule(kwargs).unwrap(), "ct state { related,established } accept");
        let kwargs = entries! {
            "proto" => "tcp", "dport" => 80, "saddr" => "10.0.0.0/8", "jump" => "accept",
            "counter" => true,
        };
        let expected = "counter ip saddr 10.0.0.0/8 tcp dport { 80 } accept";
        assert_eq!(rule(kwargs).unwrap(), expected);
    }

    #[test]
    fn ranges_of_ports_as_iptables_writes_them() {
        let kwargs = entries! {
            "proto" => "tcp", "sport" => "1025:65535", "jump" => "accept",
        };
        assert_eq!(build("ipv4", &kwargs).unwrap(), "tcp sport { 1025-65535 } accept");
    }

    #[test]
    fn a_set_of_one_is_listed_without_braces() {
        assert_eq!(plain("tcp dport { 80 } accept"), plain("tcp dport 80 accept"));
    }
}
