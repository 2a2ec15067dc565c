//! `make demo`: the commands a newcomer would try, on the tree in `examples/demo`.
//!
//! First one machine without a master, then a master with three minions. Everything happens in a
//! scratch folder (see [`fleet`]); `DEMO_KEEP=1` leaves it there, with the daemons running. Each step
//! says how it should end and what must be seen; a surprise fails the demo and ends its daemons.
//!
//! To add a step to the fleet's part, add a `walk.step(…)` in [`with_a_master`].

mod fleet;

use std::{
    fs,
    io::{IsTerminal, Read},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use self::fleet::{ALONE, Fleet, MINIONS};
use crate::shell;

/// How a step should end.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Well,
    Badly,
}

/// Builds the executable and walks through the steps.
pub(crate) fn run(root: &Path) -> Result<()> {
    println!("Building …");
    shell::run(shell::cargo().args(["build", "--quiet", "--package", "halite"]).current_dir(root))?;
    let scratch = fleet::scratch(root);
    fleet::prepare(root, &scratch).with_context(|| format!("preparing {}", scratch.display()))?;
    let keep = std::env::var_os("DEMO_KEEP").is_some_and(|value| !value.is_empty());
    let walk = Walk { root, scratch: &scratch, colour: std::io::stdout().is_terminal() };
    without_a_master(&walk)?;
    let mut fleet = Fleet::new(&scratch, keep);
    if let Err(error) = with_a_master(&walk, &mut fleet) {
        eprintln!("\n{}", fleet.logs());
        return Err(error);
    }
    if keep {
        fleet.keep();
        println!(
            "\nA master and {} minions are running. To talk to them and to stop them:\n\n\
             cd {}\nbin/salt -c master/etc '*' test.ping\nbin/salt-run -c master/etc jobs.list_jobs\n\
             bin/salt-call -c web1/etc pillar.items\nkill $(cat pid/*)\n",
            MINIONS.len(),
            scratch.display()
        );
    } else {
        drop(fleet);
        fs::remove_dir_all(&scratch)?;
        println!("\nCleaned up. DEMO_KEEP=1 make demo leaves the fleet running.");
    }
    Ok(())
}

fn without_a_master(walk: &Walk) -> Result<()> {
    let config = &format!("{ALONE}/etc");
    walk.title("One machine, no master");
    walk.say("One executable, known by all of Salt's names.");
    walk.step("salt-call", &["--version"], Ends::Well)?.shows("(Halite")?;
    walk.say("A configuration file with a misspelt option, which Salt ignores silently.");
    walk.step("halite", &["doctor", "--config", "--quiet", "-c", "slip"], Ends::Badly)?
        .shows("did you mean `log_level`?")?;
    walk.say("What does the tree say? Jinja and YAML are rendered; nothing is changed.");
    walk.step("salt-call", &["-c", config, "state.show_sls", "web", "--out", "yaml"], Ends::Well)?
        .shows("web-site-example.org:")?;
    walk.say("What would it change?");
    let terse = "--state-output=terse";
    walk.step("salt-call", &["-c", config, "state.apply", "test=True", terse], Ends::Well)?
        .shows("Succeeded: 5 (unchanged=5, changed=5)")?;
    ensure!(!walk.scratch.join(ALONE).join("etc/motd").exists(), "test=True wrote a file");
    walk.say("Do it.");
    walk.step("salt-call", &["-c", config, "state.apply"], Ends::Well)?
        .shows("Succeeded: 5 (changed=5)")?;
    walk.file(&format!("{ALONE}/etc/motd"))?.shows("web0: web server of Example Ltd")?;
    walk.say("Again: nothing is left to do.");
    walk.step("salt-call", &["-c", config, "state.apply", terse], Ends::Well)?
        .shows("Succeeded: 5\n")?;
    walk.say("Two slips of the pen. Salt writes an empty file and says that all is well.");
    walk.step("salt-call", &["-c", config, "state.apply", "typo"], Ends::Well)?
        .shows("did you mean `contents`?")?;
    walk.say("A template that does not render.");
    let broken = ["-c", config, "--retcode-passthrough", "state.apply", "broken"];
    walk.step("salt-call", &broken, Ends::Badly)?.shows("broken/init.sls")?;
    Ok(())
}

fn with_a_master(walk: &Walk, fleet: &mut Fleet) -> Result<()> {
    let master = ["-c", "master/etc"];
    let with = |args: &[&'static str]| [&master[..], args].concat();
    walk.title("A master and three minions");
    println!("\n$ salt-master -c master/etc &");
    fleet.start("salt-master", "master")?;
    for minion in MINIONS {
        println!("$ salt-minion -c {minion}/etc &");
        fleet.start("salt-minion", minion)?;
    }
    let listed = |list: &'static str, count: usize| {
        move || {
            let keys = walk.quietly("salt-key", &with(&["-l", list, "--out", "json"]))?;
            Ok(MINIONS.iter().filter(|id| keys.contains(**id)).count() == count)
        }
    };
    fleet.wait("the minions show their keys", listed("un", MINIONS.len()))?;
    walk.say("Nobody gets anything from the master before somebody accepted the key.");
    walk.step("salt-key", &with(&["-L"]), Ends::Well)?
        .shows("Unaccepted Keys:\ndb1\nweb1\nweb2")?;
    walk.step("salt-key", &with(&["-A", "-y"]), Ends::Well)?
        .shows("Key for minion web2 accepted.")?;
    fleet.wait("the minions connect", || {
        let up = walk.quietly("salt-run", &with(&["manage.up", "--out", "json"]))?;
        Ok(MINIONS.iter().all(|id| up.contains(id)))
    })?;
    walk.say("Is everybody there?");
    let ping = walk.step("salt", &with(&["*", "test.ping"]), Ends::Well)?;
    for id in MINIONS {
        ping.shows(&format!("{id}:\n    True"))?;
    }
    walk.say("What are they? Targets are globs, grains, pillar, subnets, or all of it with and, or, not.");
    let target = "G@kernel:Linux and not db*";
    walk.step("salt", &with(&["-C", target, "grains.item", "os", "num_cpus"]), Ends::Well)?
        .shows("web2:")?;
    walk.say("Each minion gets the pillar that is meant for it, and nothing else.");
    let pillars = walk.step("salt", &with(&["*", "pillar.ls"]), Ends::Well)?;
    pillars.shows("db1:\n    - company\n    - role\n    - db\n")?;
    pillars.shows("web1:\n    - company\n    - role\n    - web\n")?;
    walk.say("The highstate: files and pillar come from the master.");
    walk.step("salt", &with(&["*", "state.apply", "--state-output=terse"]), Ends::Well)?
        .shows("Summary for web2")?;
    walk.file("web1/etc/nginx/sites/example.org.conf")?.shows("listen 8080;")?;
    walk.file("db1/etc/mysql/my.cnf")?.shows("max_connections = 200")?;
    walk.say("The job is in the history, with every return.");
    let search = with(&["jobs.list_jobs", "search_function=state.apply"]);
    let job = walk.step("salt-run", &search, Ends::Well)?.jid()?;
    let lookup = with(&["jobs.lookup_jid", "JID", "--state-output=changes"]);
    let lookup: Vec<_> = lookup.iter().map(|arg| if *arg == "JID" { &*job } else { arg }).collect();
    walk.step("salt-run", &lookup, Ends::Well)?.shows("Summary for db1")?;
    an_event(walk, fleet)?;
    a_reaction(walk, fleet)?;
    walk.say("A minion dies. Nobody waits for it.");
    println!("$ kill -9 $(cat pid/db1)");
    fleet.kill("db1")?;
    walk.step("salt", &with(&["*", "test.ping"]), Ends::Badly)?
        .shows("db1:\n    Minion did not return. [Not connected]")?;
    fleet.start("salt-minion", "db1")?;
    a_return_without_a_master(walk, fleet)
}

/// A minion fires an event, and the master's reactor has it mended.
fn a_reaction(walk: &Walk, fleet: &mut Fleet) -> Result<()> {
    const SITE: &str = "web1/etc/nginx/sites/example.org.conf";
    walk.say("An event can set things going. This rule mends a site that is gone:");
    let site = walk.scratch.join(SITE);
    let rule = fs::read_to_string(walk.root.join("examples/demo/reactor/heal.sls"))?;
    println!("$ cat reactor/heal.sls\n{}", rule.trim_end());
    println!("$ rm {SITE}");
    fs::remove_file(&site)?;
    walk.step("salt-call", &["-c", "web1/etc", "event.send", "demo/site/gone"], Ends::Well)?;
    fleet.wait("the site is put back", || Ok(site.exists()))?;
    walk.file(SITE)?.shows("listen 8080;")
}

/// A minion fires an event and somebody on the master sees it.
fn an_event(walk: &Walk, fleet: &mut Fleet) -> Result<()> {
    walk.say("A minion has something to tell; whoever listens hears it.");
    let watch = ["-c", "master/etc", "state.event", "demo/*", "count=1", "pretty=True"];
    println!("$ salt-run {} &", shown(&watch));
    let mut watcher = walk.command("salt-run", &watch).stdout(Stdio::piped()).spawn()?;
    let mut fired = false;
    let heard = fleet.wait("the event is seen", || {
        if watcher.try_wait()?.is_some() {
            return Ok(true);
        }
        // The watcher says nothing before it hears something: it may need a moment to listen.
        std::thread::sleep(Duration::from_millis(300));
        let fire = ["-c", "web1/etc", "event.send", "demo/deployed", "version=1.2.3"];
        if std::mem::replace(&mut fired, true) {
            walk.quietly("salt-call", &fire)?;
        } else {
            walk.step("salt-call", &fire, Ends::Well)?;
        }
        Ok(false)
    });
    let _ = watcher.kill();
    let mut text = String::new();
    if let Some(mut out) = watcher.stdout.take() {
        out.read_to_string(&mut text)?;
    }
    watcher.wait()?;
    heard?;
    println!("{}", text.trim_end());
    Seen { text, what: "salt-run state.event".into() }.shows("\"version\": \"1.2.3\"")
}

/// The master is killed while a job runs, and is away when it ends.
fn a_return_without_a_master(walk: &Walk, fleet: &mut Fleet) -> Result<()> {
    walk.say("The master is killed while a job runs, and is away when the job ends.");
    let sleep = ["-c", "master/etc", "--async", "web1", "test.sleep", "1"];
    let job = walk.step("salt", &sleep, Ends::Well)?.jid()?;
    println!("$ kill -9 $(cat pid/master); sleep 2; salt-master -c master/etc &");
    fleet.kill("master")?;
    std::thread::sleep(Duration::from_secs(2));
    fleet.start("salt-master", "master")?;
    let lookup = ["-c", "master/etc", "jobs.lookup_jid", &job];
    fleet.wait("the return arrives", || Ok(walk.quietly("salt-run", &lookup)?.contains("web1")))?;
    walk.step("salt-run", &lookup, Ends::Well)?.shows("web1:\n    True")
}

/// Runs commands in the scratch folder and shows them.
struct Walk<'a> {
    root: &'a Path,
    scratch: &'a Path,
    colour: bool,
}

impl Walk<'_> {
    fn title(&self, text: &str) {
        println!("\n━━ {text} {}", "━".repeat(70_usize.saturating_sub(text.len())));
    }

    fn say(&self, text: &str) {
        println!("\n── {text}");
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.scratch.join("bin").join(program));
        command.args(args).current_dir(self.scratch).stdin(Stdio::null());
        command
    }

    /// Shows one command and what it prints; fails if it does not end as it should.
    fn step(&self, program: &str, args: &[&str], ends: Ends) -> Result<Seen> {
        println!("$ {program} {}", shown(args));
        let mut command = self.command(program, args);
        if self.colour && matches!(program, "salt" | "salt-call" | "salt-run" | "salt-key") {
            command.arg("--force-color");
        }
        let before = Instant::now();
        let output = command.output().with_context(|| format!("starting {program}"))?;
        let took = before.elapsed().as_millis();
        let text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let text = text.concat();
        print!("{text}");
        let code = output.status.code().with_context(|| format!("{program} was killed"))?;
        println!("({took} ms, exit code {code})");
        match ends {
            Ends::Well if code != 0 => bail!("this step should have worked"),
            Ends::Badly if code == 0 => bail!("this step should have failed"),
            Ends::Well | Ends::Badly => {}
        }
        Ok(Seen { text: plain(&text), what: program.to_owned() })
    }

    /// Runs a command without showing it; returns what it printed, whatever its end.
    fn quietly(&self, program: &str, args: &[&str]) -> Result<String> {
        let output = self.command(program, args).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Shows a file.
    fn file(&self, path: &str) -> Result<Seen> {
        let text = fs::read_to_string(self.scratch.join(path)).with_context(|| path.to_owned())?;
        println!("$ cat {path}\n{}", text.trim_end());
        Ok(Seen { text, what: path.to_owned() })
    }
}

/// What a step showed.
struct Seen {
    text: String,
    what: String,
}

impl Seen {
    fn shows(&self, text: &str) -> Result<()> {
        ensure!(self.text.contains(text), "{} should have shown {text:?}", self.what);
        Ok(())
    }

    /// Returns the job id in what was shown.
    fn jid(&self) -> Result<String> {
        let digits =
            |word: &&str| word.len() == 20 && word.bytes().all(|byte| byte.is_ascii_digit());
        let mut words = self.text.split(|c: char| !c.is_ascii_alphanumeric());
        Ok(words
            .find(digits)
            .with_context(|| format!("{} showed no job id", self.what))?
            .to_owned())
    }
}

/// Returns arguments as one would type them.
fn shown(args: &[&str]) -> String {
    let quoted = |arg: &&str| {
        if arg.contains([' ', '*', '(', '&']) { format!("'{arg}'") } else { (*arg).to_owned() }
    };
    args.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns a text without its colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain += before;
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}
