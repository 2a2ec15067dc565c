//! Commands on other machines, by the program `ssh`.
//!
//! The program gets its arguments as words, with `--` before the host; nothing here goes through a
//! shell. There is one on the other side, always: what it is sent is quoted word by word. Nobody is
//! asked for anything (`BatchMode`), and host keys are checked as ssh is configured to.

mod roster;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use halite_modules::cmd::shlex;
use halite_spec::{Cx, Error, Result, host::Command};

pub(crate) use roster::{Roster, Target};

/// What a command on a host wrote and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// What ssh ends with when it did not get as far as the command.
const NOT_REACHED: i32 = 255;

impl Target {
    /// Returns the command that has the host run these words.
    fn command(&self, words: &[&str]) -> Command {
        let option = |text: String| ["-o".to_owned(), text];
        let mut argv = vec!["ssh".to_owned()];
        argv.extend(option("BatchMode=yes".into()));
        argv.extend(option(format!("ConnectTimeout={}", self.timeout)));
        argv.extend(self.options.iter().cloned().flat_map(option));
        // What a terminal would be told at the end is no part of the answer.
        argv.extend(option("LogLevel=ERROR".into()));
        argv.extend(["-p".to_owned(), self.port.to_string()]);
        argv.extend(self.user.iter().flat_map(|user| ["-l".to_owned(), user.clone()]));
        argv.extend(self.key.iter().flat_map(|key| ["-i".to_owned(), key.display().to_string()]));
        if self.tty {
            argv.push("-tt".to_owned());
        }
        argv.extend(["--".to_owned(), self.host.clone()]);
        let mut asked: Vec<&str> = Vec::new();
        if self.sudo {
            asked.extend(["sudo", "-n"]);
            asked.extend(self.sudo_user.iter().flat_map(|user| ["-u", user]));
            asked.push("--");
        }
        asked.extend(words);
        let asked: Vec<String> = asked.into_iter().map(shlex::quote).collect();
        argv.push(asked.join(" "));
        Command::line(argv)
    }

    /// Runs words on the host, for at most this long beyond the time it takes to connect. A host that
    /// is not reached is an error.
    pub(crate) fn run(
        &self,
        cx: &Cx,
        words: &[&str],
        stdin: Option<Vec<u8>>,
        time: Duration,
    ) -> Result<Ran> {
        let limit = time.saturating_add(Duration::from_secs(self.timeout));
        let command = Command { stdin, ..self.command(words).timeout(limit) };
        let output = cx.host.run(&command)?;
        let stderr = output.stderr_text();
        if output.timed_out {
            let seconds = limit.as_secs();
            return Err(Error::failed(format!("{} did not end within {seconds} s", self.host)));
        }
        if output.code == NOT_REACHED {
            let said = stderr.trim();
            return Err(Error::failed(if said.is_empty() { "ssh failed" } else { said }));
        }
        let stdout = output.stdout_text();
        let stdout = if self.tty { stdout.replace("\r\n", "\n") } else { stdout };
        Ok(Ran { code: output.code, stdout, stderr })
    }
}

/// Does something for each host, some of them at a time (`ssh_max_procs`); answers are in the order
/// of the hosts.
pub(crate) fn each<T: Send>(
    cx: &Cx,
    hosts: Vec<(String, Result<Target>)>,
    work: impl Fn(&Target) -> Result<T> + Sync,
) -> Vec<(String, Result<T>)> {
    let at_a_time = cx.opt("ssh_max_procs").and_then(|number| number.as_int()).unwrap_or(25);
    let at_a_time = usize::try_from(at_a_time).unwrap_or(1).clamp(1, hosts.len().max(1));
    let (work, hosts, next) = (&work, &hosts, AtomicUsize::new(0));
    let take_turns = || {
        let mut done = Vec::new();
        while let Some((at, (_, target))) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            hosts.get(at).map(|host| (at, host))
        } {
            let answer = match target {
                Ok(target) => work(target),
                Err(error) => Err(Error::failed(error.to_string())),
            };
            done.push((at, answer));
        }
        done
    };
    let mut answers: Vec<(usize, Result<T>)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(take_turns)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    });
    answers.sort_by_key(|(at, _)| *at);
    answers
        .into_iter()
        .filter_map(|(at, answer)| Some((hosts.get(at)?.0.clone(), answer)))
        .collect()
}

#[cfg(test)]
mod tests {
    use halite_testkit::Kit;
    use halite_value::{Dict, Value, dict, entries};

    use super::*;

    const ROSTER: &str = "\
web1: {host: 10.0.0.1, user: deploy, port: 2222, priv: /keys/id, sudo: true, tty: true}
web2: 10.0.0.2
odd: {host: '-oProxyCommand=touch /tmp/x'}
word: {host: db1, passwd: secret}
";

    fn cx(more: Dict) -> Cx {
        let kit = Kit::new();
        kit.fake.file("/etc/salt/roster", ROSTER);
        let usual = entries! { "ssh_user" => "root", "ssh_port" => "22", "ssh_timeout" => 7 };
        for (name, value) in usual.entries().into_iter().chain(more.entries()) {
            kit.cx.opts.insert(name, value);
        }
        kit.cx
    }

    fn targets(cx: &Cx, target: &str, kind: &str) -> Vec<(String, Result<Target>)> {
        Roster::read(cx, None, &Dict::new()).unwrap().targets(cx, target, kind).unwrap()
    }

    fn line(target: &Target, words: &[&str]) -> String {
        target.command(words).shown()
    }

    #[test]
    fn commands_are_quoted_once() {
        let cx = cx(Dict::new());
        let found = targets(&cx, "web*", "glob");
        let [(_, Ok(one)), (_, Ok(two))] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            line(one, &["salt-call", "a b", "$(x)"]),
            "ssh -o BatchMode=yes -o ConnectTimeout=7 -o LogLevel=ERROR -p 2222 -l deploy -i /keys/id -tt -- 10.0.0.1 \
             sudo -n -- salt-call 'a b' '$(x)'"
        );
        assert_eq!(
            line(two, &["id"]),
            "ssh -o BatchMode=yes -o ConnectTimeout=7 -o LogLevel=ERROR -p 22 -l root -- 10.0.0.2 id"
        );
    }

    #[test]
    fn entries_that_cannot_be_used_say_why() {
        let cx = cx(Dict::new());
        let said = |id: &str| match targets(&cx, id, "list").remove(0).1 {
            Err(error) => error.to_string(),
            Ok(target) => panic!("{target:?}"),
        };
        assert!(said("odd").contains("no usable `host` for `odd`"), "{}", said("odd"));
        assert!(said("word").starts_with("`passwd` of the roster is not part"), "{}", said("word"));
    }

    #[test]
    fn who_is_meant() {
        let cx = cx(
            entries! { "ssh_list_nodegroups" => dict! { "all" => Value::list(["web2", "gone"]) } },
        );
        let ids = |target: &str, kind: &str| -> Vec<String> {
            targets(&cx, target, kind).into_iter().map(|(id, _)| id).collect()
        };
        assert_eq!(ids("w.b[12]", "pcre"), ["web1", "web2"]);
        assert_eq!(ids("web2,odd", "list"), ["web2", "odd"]);
        assert_eq!(ids("all", "nodegroup"), ["web2"]);
        let roster = Roster::read(&cx, None, &Dict::new()).unwrap();
        assert!(roster.targets(&cx, "os:Debian", "grain").is_err());
        assert!(Roster::read(&cx, Some("cloud"), &Dict::new()).is_err());
    }

    #[test]
    fn defaults_are_for_what_is_not_there() {
        let cx = cx(entries! { "roster_defaults" => dict! { "user" => "ops", "port" => 23 } });
        let given = entries! { "priv" => "/other" };
        let found = Roster::read(&cx, Some("flat"), &given).unwrap();
        let found = found.targets(&cx, "web*", "glob").unwrap();
        let [(_, Ok(one)), (_, Ok(two))] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(line(one, &["x"]).matches("-l deploy -i /keys/id").count(), 1);
        assert!(line(two, &["x"]).contains("-p 23 -l ops -i /other -- 10.0.0.2 x"));
    }

    #[test]
    fn each_host_has_its_answer_in_order() {
        let cx = cx(entries! { "ssh_max_procs" => 2 });
        let answers = each(&cx, targets(&cx, "*", "glob"), |target| Ok(target.host.clone()));
        let ids: Vec<&str> = answers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["web1", "web2", "odd", "word"]);
        assert!(matches!(&answers[1].1, Ok(host) if host == "10.0.0.2") && answers[2].1.is_err());
    }
}
