//! `quota`: how much of a file system users and groups may use.

use halite_spec::{Cx, Error, Need, Rest, Result, function, module};
use halite_value::{Dict, Value, dict};

use crate::cmd::{Options, Ran, plain};

module! {
    /// How much of a file system users and groups may use.
    "quota", needs = [
        Need::program(&["setquota"], "The quota execution module cannot be loaded: the module is only available on POSIX-like systems with the setquota binary available."),
    ]: report, set, warn, stats, on, off, get_mode,
}

fn run(cx: &Cx, words: &[&str], query: bool) -> Result<Ran> {
    plain(cx, words.iter().copied(), Options { query, ignore_retcode: query, ..Options::default() })
}

const LIMITS: [&str; 4] =
    ["block-soft-limit", "block-hard-limit", "file-soft-limit", "file-hard-limit"];

/// One of the two tables of `repquota`.
fn table(cx: &Cx, mount: &str, option: &str, heading: &str) -> Result<Dict> {
    let text = run(cx, &["repquota", "-vp", option, mount], true)?.stdout;
    Ok(read_table(&text, heading))
}

fn read_table(text: &str, heading: &str) -> Dict {
    let (ret, names) = (Dict::new(), Dict::new());
    ret.insert(heading, &names);
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("Block grace") {
            for (part, key) in line.split(';').zip(["Block Grace Time", "Inode Grace Time"]) {
                let time = part.split(':').nth(1).unwrap_or_default();
                ret.insert(key, Value::list(time.split_whitespace().map(str::to_owned)));
            }
        }
        if line.starts_with("---") {
            inside = true;
        } else if line.trim().is_empty() {
            inside = false;
        } else if inside {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, _, block_used, block_soft, block_hard, block_grace, used, soft, hard, grace] =
                words.as_slice()
            else {
                continue;
            };
            names.insert(
                *name,
                dict! {
                    "block-used" => *block_used, "block-soft-limit" => *block_soft,
                    "block-hard-limit" => *block_hard, "block-grace" => *block_grace,
                    "file-used" => *used, "file-soft-limit" => *soft,
                    "file-hard-limit" => *hard, "file-grace" => *grace,
                },
            );
        }
    }
    ret
}

/// Return what users and groups use and may use.
///
/// ```console
/// $ salt web1 quota.report /srv/data
/// ```
#[function]
pub fn report(
    cx: &Cx,
    /// The file system.
    mount: String,
) -> Result<Value> {
    let users = table(cx, &mount, "-u", "Users")?;
    let groups = table(cx, &mount, "-g", "Groups")?;
    Ok(dict! { mount.as_str() => dict! { "User Quotas" => users, "Group Quotas" => groups } })
}

/// Set the limits of a user or a group; what is not given stays.
///
/// ```console
/// $ salt web1 quota.set /srv/data user=ada block-soft-limit=2000000
/// ```
#[function]
pub fn set(
    cx: &Cx,
    /// The file system.
    device: String,
    /// `user` or `group`, and `block-soft-limit`, `block-hard-limit`, `file-soft-limit`,
    /// `file-hard-limit`.
    kwargs: Rest,
) -> Result<Value> {
    let name =
        |key: &str| kwargs.kwargs.get(key).filter(Value::truthy).map(|name| name.to_string());
    let (option, heading, shown, name) = match (name("user"), name("group")) {
        (Some(user), _) => ("-u", "Users", "User", user),
        (None, Some(group)) => ("-g", "Groups", "Group", group),
        (None, None) => return Err(Error::failed("A valid user or group was not found")),
    };
    let known = table(cx, &device, option, heading)?.get(heading).and_then(|all| all.get(&name));
    let now = Dict::new();
    for limit in LIMITS {
        let own = known.as_ref().and_then(|known| known.get(limit)).and_then(|own| own.to_int());
        let given = kwargs.kwargs.get(limit);
        // differs: Salt sets what is not given to nothing.
        now.insert(limit, given.and_then(|given| given.to_int()).or(own).unwrap_or(0));
    }
    let mut words = vec!["setquota".to_owned(), option.to_owned(), name.clone()];
    words.extend(LIMITS.iter().map(|limit| now.get(*limit).unwrap_or_default().to_string()));
    words.push(device);
    let ran = plain(cx, words, Options::default())?;
    if !ran.ok() {
        return Err(Error::failed(format!(
            "Unable to set desired quota. Error follows: \n{}",
            ran.stderr
        )));
    }
    Ok(dict! { format!("{shown}: {name}") => now })
}

/// Warn the users who are over their limits.
///
/// ```console
/// $ salt web1 quota.warn
/// ```
#[function]
pub fn warn(cx: &Cx) -> Result<Value> {
    run(cx, &["quotawarn"], false)?;
    Ok(Value::Null)
}

/// Return what the kernel counts.
///
/// ```console
/// $ salt web1 quota.stats
/// ```
#[function]
pub fn stats(cx: &Cx) -> Result<Dict> {
    let text = run(cx, &["quotastats"], true)?.stdout;
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    Ok(pairs.collect())
}

/// Turn the limits of a file system on.
///
/// ```console
/// $ salt '*' quota.on /media/data
/// ```
#[function]
pub fn on(
    cx: &Cx,
    /// The file system.
    device: String,
) -> Result<bool> {
    run(cx, &["quotaon", &device], false)?;
    Ok(true)
}

/// Turn the limits of a file system off.
///
/// ```console
/// $ salt '*' quota.off /media/data
/// ```
#[function]
pub fn off(
    cx: &Cx,
    /// The file system.
    device: String,
) -> Result<bool> {
    run(cx, &["quotaoff", &device], false)?;
    Ok(true)
}

/// Return whether the limits of a file system are on.
///
/// ```console
/// $ salt '*' quota.get_mode /media/data
/// ```
#[function]
pub fn get_mode(
    cx: &Cx,
    /// The file system.
    device: String,
) -> Result<Dict> {
    let text = run(cx, &["quotaon", "-p", &device], true)?.stdout;
    let ret = Dict::new();
    // `group quota on /mnt (/dev/sda1) is off`
    for line in text.trim().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kind, _, _, mount, device, _, mode, ..] = words.as_slice() else { continue };
        if let Value::Dict(own) = ret.get_or_insert_with(*mount, Value::dict) {
            own.insert("device", device.trim_matches(['(', ')']));
            own.insert(*kind, *mode);
        }
    }
    Ok(ret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_report() {
        let text = "*** Report for user quotas on device /dev/sda1\nBlock grace time: 7days; Inode \
            grace time: 6days\n   Block limits  File limits\nUser used soft hard grace used soft hard \
            grace\n------\njoe  -- 10 100 200 0 1 5 6 0\n\nStatistics:\nTotal blocks: 7\n";
        let expected = "{'Users': {'joe': {'block-used': '10', 'block-soft-limit': '100', \
            'block-hard-limit': '200', 'block-grace': '0', 'file-used': '1', 'file-soft-limit': '5', \
            'file-hard-limit': '6', 'file-grace': '0'}}, 'Block Grace Time': ['7days'], \
            'Inode Grace Time': ['6days']}";
        assert_eq!(Value::from(read_table(text, "Users")).repr(), expected);
    }
}
