//! `redis`: returns and jobs in a Redis server, by the program `redis-cli`.
//!
//! The keys are those of genuine Salt: `load:<jid>` is a job, `ret:<jid>` a hash of returns by
//! minion, `<minion>:<function>` the last job in which it ran that, `minions` the set of them all.
//! They expire with `keep_jobs_seconds`. Values are JSON on one line, so that lines can be counted.

use halite_spec::{Cx, Result, host::Command};
use halite_value::{Dict, Value};

use crate::{
    Options,
    cache::{Cache, Kept, Record, Refused, keep_seconds, parsed},
    line, returner,
};

returner! {
    /// Keep returns and jobs in Redis.
    "redis": ret, cache = CACHE
}

// What is old goes by itself.
static CACHE: Cache = Cache { save, load, returns, loads, last, minions, clean: None };

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '\\' | '"' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\x00"),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Runs commands, one on a line; returns what was answered, line by line.
fn run(cx: &Cx, options: &Options, script: &str) -> Kept<Vec<String>> {
    let mut command = Command::line(["redis-cli", "--no-auth-warning"]);
    let (mut host, mut port) = (options.text(cx, "host", "salt"), options.text(cx, "port", "6379"));
    if options.get(cx, "cluster_mode").is_some_and(|is_cluster| is_cluster.truthy()) {
        // One member knows the others.
        command = command.args(["-c"]);
        let nodes = options.get(cx, "cluster.startup_nodes").unwrap_or_default();
        if let Some(node) = nodes.items_of_sequence().unwrap_or_default().first() {
            let of = |key: &str| node.get(key).map(|value| value.to_str().to_string());
            host = of("host").unwrap_or(host);
            port = of("port").unwrap_or(port);
        }
    }
    match options.text(cx, "unix_socket_path", "").as_str() {
        "" => command = command.args(["-h", &host, "-p", &port]),
        socket => command = command.args(["-s", socket]),
    }
    command = command.args(["-n", &options.text(cx, "db", "0")]);
    let password = options.text(cx, "password", "");
    if !password.is_empty() {
        command = command.env("REDISCLI_AUTH", password);
    }
    command.stdin = Some(script.as_bytes().to_vec());
    let output = cx.host.run(&command).map_err(halite_spec::Error::from)?;
    let (said, complaint) = (output.stdout_text(), output.stderr_text());
    let starts = |words: &[&str]| {
        said.lines().chain(complaint.lines()).any(|line| words.iter().any(|w| line.starts_with(w)))
    };
    let all = || format!("redis-cli: {} {}", complaint.trim(), said.trim());
    if !output.ok() || starts(&["Could not connect", "NOAUTH", "WRONGPASS", "LOADING", "OOM"]) {
        return Err(Refused::Unreachable(all()));
    }
    if starts(&["ERR ", "WRONGTYPE", "(error)", "MOVED", "READONLY"]) {
        return Err(Refused::Rejected(all()));
    }
    Ok(said.lines().map(str::to_owned).collect())
}

fn save(cx: &Cx, options: &Options, records: &[Record]) -> Kept<()> {
    let seconds = keep_seconds(cx);
    let mut script = String::new();
    for record in records {
        match record {
            Record::Load { jid, load } => {
                let (key, value) = (quoted(&format!("load:{jid}")), quoted(&line(&load.into())));
                script.push_str(&match seconds {
                    0 => format!("SET {key} {value}\n"),
                    _ => format!("SETEX {key} {seconds} {value}\n"),
                });
            }
            Record::Return(ret) => {
                let text = |key: &str| ret.get(key).unwrap_or_default().to_str();
                let (jid, id, fun) = (text("jid"), text("id"), text("fun"));
                let key = quoted(&format!("ret:{jid}"));
                let (minion, whole) = (quoted(&id), quoted(&line(&ret.into())));
                let (last, jid) = (quoted(&format!("{id}:{fun}")), quoted(&jid));
                script.push_str(&match seconds {
                    0 => format!("HSET {key} {minion} {whole}\nSET {last} {jid}\n"),
                    _ => format!(
                        "HSET {key} {minion} {whole}\nEXPIRE {key} {seconds}\n\
                         SET {last} {jid} EX {seconds}\n"
                    ),
                });
                script.push_str(&format!("SADD minions {minion}\n"));
            }
        }
    }
    run(cx, options, &script).map(drop)
}

fn ret(cx: &Cx, options: &Options, ret: &Dict) -> Result<()> {
    Ok(save(cx, options, &[Record::Return(ret.clone())])?)
}

fn load(cx: &Cx, options: &Options, jid: &str) -> Kept<Option<Value>> {
    let said = run(cx, options, &format!("GET {}\n", quoted(&format!("load:{jid}"))))?;
    Ok(said.first().filter(|text| !text.is_empty()).map(|text| parsed(text)))
}

fn returns(cx: &Cx, options: &Options, jid: &str) -> Kept<Dict> {
    let said = run(cx, options, &format!("HGETALL {}\n", quoted(&format!("ret:{jid}"))))?;
    let pairs = said.chunks(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    Ok(pairs.map(|(id, ret)| (id.as_str(), parsed(ret))).collect())
}

/// Returns the keys that fit a pattern; the server is not held up by it.
fn keys(cx: &Cx, options: &Options, pattern: &str) -> Kept<Vec<String>> {
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let mut said = run(cx, options, &format!("SCAN {cursor} MATCH {pattern} COUNT 1000\n"))?;
        if said.is_empty() {
            return Ok(found);
        }
        cursor = said.remove(0);
        found.extend(said.into_iter().filter(|key| !key.is_empty()));
        if cursor == "0" || cursor.parse::<u64>().is_err() {
            found.sort();
            found.dedup();
            return Ok(found);
        }
    }
}

/// Returns what stands under these keys, in their order.
fn values(cx: &Cx, options: &Options, keys: &[String]) -> Kept<Vec<String>> {
    let script: String = keys.iter().map(|key| format!("GET {}\n", quoted(key))).collect();
    if script.is_empty() { Ok(Vec::new()) } else { run(cx, options, &script) }
}

fn loads(cx: &Cx, options: &Options) -> Kept<Dict> {
    let keys = keys(cx, options, "load:*")?;
    let values = values(cx, options, &keys)?;
    let jids = keys.iter().map(|key| key.trim_start_matches("load:"));
    // One that has just expired is an empty line.
    let pairs = jids.zip(values).filter(|(_, text)| !text.is_empty());
    Ok(pairs.map(|(jid, text)| (jid, parsed(&text))).collect())
}

fn minions(cx: &Cx, options: &Options) -> Kept<Vec<Value>> {
    let said = run(cx, options, "SMEMBERS minions\n")?;
    Ok(said.into_iter().filter(|id| !id.is_empty()).map(Value::from).collect())
}

fn last(cx: &Cx, options: &Options, fun: &str) -> Kept<Dict> {
    let ids: Vec<String> = minions(cx, options)?.iter().map(|id| id.to_str().to_string()).collect();
    let keys: Vec<String> = ids.iter().map(|id| format!("{id}:{fun}")).collect();
    let values = values(cx, options, &keys)?;
    let pairs = ids.iter().zip(values).filter(|(_, jid)| !jid.is_empty());
    Ok(pairs.map(|(id, jid)| (id.as_str(), jid)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("a \"b\"\\\n\0"), r#""a \"b\"\\\n\x00""#);
    }
}
