//! Orchestrations: steps across machines, with real daemons.

use std::time::Duration;

use halite_e2e::fleet::{Fleet, until};

fn fleet() -> Fleet {
    let mut fleet = Fleet::new("auto_accept: True\ntimeout: 5\ngather_job_timeout: 3\n");
    fleet.machine.write("srv/salt/good.sls", "ok:\n  test.succeed_with_changes: []\n");
    fleet.machine.write("srv/salt/same.sls", "ok:\n  test.succeed_without_changes: []\n");
    fleet.machine.write("srv/salt/bad.sls", "bad:\n  test.fail_without_changes: []\n");
    fleet.start_minion("m1", "grains: {role: web}");
    fleet.minion("m2", "grains: {role: web}");
    fleet.wait_for("m1");
    fleet
}

/// Runs an orchestration given as text, and returns result and comment of each step by id.
fn orchestrate(fleet: &Fleet, text: &str, more: &[&str]) -> (i32, Vec<(String, String, String)>) {
    fleet.machine.write("srv/salt/orch/x.sls", text);
    let mut args = vec!["state.orchestrate", "orch.x", "--out=json"];
    args.extend(more);
    let ran = fleet.run(&args);
    let parsed = halite_value::json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}\n{}", ran.out, ran.err, fleet.log()));
    let steps =
        parsed.get("data").and_then(|data| data.get("boss_master")).expect("under its name");
    let steps = steps.as_dict().unwrap_or_else(|| panic!("{}", ran.out)).clone();
    let mut found: Vec<(i64, (String, String, String))> = steps
        .into_iter()
        .map(|(_, ret)| {
            let text =
                |name: &str| ret.get(name).map(|value| value.to_string()).unwrap_or_default();
            let number = ret.get("__run_num__").and_then(|n| n.as_int()).unwrap_or(0);
            (number, (text("__id__"), text("result"), text("comment")))
        })
        .collect();
    found.sort();
    (ran.code.unwrap_or(-1), found.into_iter().map(|(_, step)| step).collect())
}

#[track_caller]
fn check(steps: &[(String, String, String)], expected: &[(&str, &str, &str)]) {
    let steps: Vec<(&str, &str, &str)> =
        steps.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(steps, expected);
}

#[test]
fn steps_succeed_and_fail_as_salts_do() {
    let fleet = fleet();
    let (code, steps) = orchestrate(
        &fleet,
        "st_ok:\n  salt.state:\n    - tgt: 'm*'\n    - sls: [good]\n\
         st_same:\n  salt.state:\n    - tgt: m1\n    - sls: same\n\
         st_bad:\n  salt.state:\n    - tgt: 'm*'\n    - sls: bad\n\
         st_none:\n  salt.state:\n    - tgt: 'zz*'\n    - sls: good\n\
         st_none_allowed:\n  salt.state:\n    - tgt: 'zz*'\n    - sls: good\n    - expect_minions: False\n\
         st_allow:\n  salt.state:\n    - tgt: 'm*'\n    - sls: bad\n    - allow_fail: 2\n\
         st_wrong:\n  salt.state:\n    - tgt: 'm*'\n    - sls: bad\n    - allow_fail: 50%\n\
         st_named:\n  salt.state:\n    - tgt: 'm*'\n    - sls: bad\n    - fail_minions: m1\n\
         st_half:\n  salt.state:\n    - tgt: 'm*'\n    - sls: bad\n    - fail_minions: 100%\n\
         st_test:\n  salt.state:\n    - tgt: m1\n    - sls: good\n    - test: True\n\
         st_list:\n  salt.state:\n    - tgt: [m1, gone]\n    - tgt_type: list\n    - sls: same\n\
         st_nothing:\n  salt.state:\n    - tgt: m1\n\
         fn_ok:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n\
         fn_none:\n  salt.function:\n    - name: test.ping\n    - tgt: 'zz*'\n\
         fn_false:\n  salt.function:\n    - name: test.false\n    - tgt: m1\n\
         fn_code:\n  salt.function:\n    - name: cmd.run\n    - tgt: m1\n    - arg: ['exit 3']\n\
         rn:\n  salt.runner:\n    - name: test.arg\n    - arg: [1]\n    - kwarg: {x: 1}\n\
         wh:\n  salt.wheel:\n    - name: key.list_all\n\
         par:\n  salt.parallel_runners:\n    - runners:\n        one:\n          - name: test.arg\n        two:\n          - name: test.arg\n\
         wait:\n  salt.wait_for_event:\n    - name: 'never/*'\n    - id_list: [a]\n    - timeout: 1\n\
         after:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n    - require:\n      - salt: fn_false\n\
         other:\n  test.succeed_without_changes: []\n",
        &[],
    );
    assert_eq!(code, 1);
    check(
        &steps,
        &[
            ("st_ok", "True", "States ran successfully. Updating m1, m2."),
            ("st_same", "True", "States ran successfully. No changes made to m1."),
            ("st_bad", "False", "Run failed on minions: m1, m2"),
            ("st_none", "False", "No minions returned"),
            ("st_none_allowed", "True", "States ran successfully."),
            ("st_allow", "True", "States ran successfully. Updating m1, m2."),
            ("st_wrong", "False", "Passed invalid value for 'allow_fail', must be an int"),
            ("st_named", "False", "Run failed on minions: m2"),
            ("st_half", "True", "States ran successfully. Updating m1, m2."),
            ("st_test", "None", "States ran successfully. Updating m1."),
            (
                "st_list",
                "False",
                "Run failed on minions: gone\nMinion gone did not return a state result.",
            ),
            ("st_nothing", "False", "No highstate or sls specified, no execution made"),
            ("fn_ok", "True", "Function ran successfully. Function test.ping ran on m1."),
            ("fn_none", "False", "No minions responded"),
            (
                "fn_false",
                "False",
                "Running function test.false failed on minions: m1 Function test.false ran on m1.",
            ),
            (
                "fn_code",
                "False",
                "Running function cmd.run failed on minions: m1 Function cmd.run ran on m1.",
            ),
            ("rn", "True", "Runner function 'test.arg' executed."),
            ("wh", "True", "Wheel function 'key.list_all' executed."),
            ("par", "True", "All runner functions executed successfully."),
            ("wait", "False", "Timeout value reached."),
            ("after", "False", "One or more requisite failed: orch.x.fn_false"),
            ("other", "True", "Success!"),
        ],
    );
}

#[test]
fn batches_pillar_test_and_events() {
    let fleet = fleet();
    let (code, steps) = orchestrate(
        &fleet,
        "{% set who = salt['pillar.get']('who', 'nobody') %}\n\
         batch:\n  salt.function:\n    - name: cmd.run\n    - tgt: {{ who }}\n    - batch: 50%\n    - arg: ['echo $$ >> {{ pillar['file'] }}']\n\
         subset:\n  salt.function:\n    - name: test.ping\n    - tgt: 'role:web'\n    - tgt_type: grain\n    - subset: 1\n\
         wait:\n  salt.wait_for_event:\n    - name: 'come/*'\n    - id_list: [a, b]\n    - timeout: 30\n    - parallel: True\n\
         pause:\n  salt.runner:\n    - name: test.sleep\n    - arg: [6]\n    - parallel: True\n\
         fire:\n  salt.runner:\n    - name: event.send\n    - kwarg: {tag: come/1, data: {id: a}}\n    - parallel: True\n    - require:\n      - salt: pause\n\
         fire2:\n  salt.runner:\n    - name: event.send\n    - kwarg: {tag: come/2, data: {id: b}}\n    - parallel: True\n    - require:\n      - salt: fire\n",
        &[&format!(
            "pillar={{\"who\": \"m*\", \"file\": \"{}\"}}",
            fleet.machine.path("pids").display()
        )],
    );
    let results: Vec<&str> = steps.iter().map(|(_, result, _)| result.as_str()).collect();
    assert_eq!((code, results), (0, vec!["True"; 6]), "{steps:?}");
    assert_eq!(fleet.machine.read("pids").unwrap_or_default().lines().count(), 2);
    let (code, steps) = orchestrate(
        &fleet,
        "a:\n  salt.function:\n    - name: test.ping\n    - tgt: 'm*'\nb:\n  salt.runner:\n    - name: test.arg\n\
         c:\n  salt.state:\n    - tgt: m1\n    - sls: good\n",
        &["test=True"],
    );
    assert_eq!(code, 0);
    check(
        &steps,
        &[
            ("a", "None", "Function test.ping would be executed on target m*"),
            ("b", "None", "Runner function 'test.arg' would be executed."),
            ("c", "None", "States ran successfully. Updating m1."),
        ],
    );
    let (code, steps) = orchestrate(
        &fleet,
        "missing:\n  salt.function:\n    - name: test.ping\n    - tgt: [m1, gone]\n    - tgt_type: list\n\
         missing_allowed:\n  salt.function:\n    - name: test.ping\n    - tgt: [m1, gone]\n    - tgt_type: list\n    - expect_minions: False\n\
         rescue:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n    - onfail:\n      - salt: missing\n\
         idle:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n    - onfail:\n      - salt: missing_allowed\n\
         again:\n  salt.function:\n    - name: test.false\n    - tgt: m1\n    - retry: {attempts: 2, interval: 1}\n\
         hard:\n  salt.function:\n    - name: test.false\n    - tgt: m1\n    - failhard: True\n\
         never:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n",
        &[],
    );
    let short: Vec<(&str, &str)> =
        steps.iter().map(|(id, result, _)| (id.as_str(), result.as_str())).collect();
    assert_eq!(code, 1);
    assert_eq!(
        short,
        [
            ("missing", "False"),
            ("missing_allowed", "True"),
            ("rescue", "True"),
            ("idle", "True"),
            ("again", "False"),
            ("hard", "False"),
        ]
    );
    assert!(steps[4].2.starts_with("Attempt 1: Returned a result of \"False\""), "{}", steps[4].2);
    // That somebody cleaned up after a failure does not make it a success.
    let (code, steps) = orchestrate(
        &fleet,
        "bad:\n  salt.function:\n    - name: test.false\n    - tgt: m1\n\
         rescue:\n  salt.function:\n    - name: test.ping\n    - tgt: m1\n    - onfail:\n      - salt: bad\n\
         odd:\n  salt.state:\n    - tgt: m1\n    - sls: good\n    - concurrent: perhaps\n",
        &[],
    );
    assert_eq!((code, steps[1].1.as_str()), (1, "True"));
    assert_eq!(
        (steps[2].1.as_str(), steps[2].2.as_str()),
        ("False", "Must pass in boolean for value of 'concurrent'")
    );
    fleet
        .run(&["state.orchestrate", "orch.missing"])
        .code(1)
        .says("No matching sls found for 'orch.missing' in env 'base'");
}

#[test]
fn a_run_goes_on_after_a_crash_of_the_master() {
    let mut fleet = fleet();
    let trace = fleet.machine.path("trace");
    let step = |id: &str, script: &str, after: &str| {
        let need = if after.is_empty() {
            String::new()
        } else {
            format!("    - require:\n      - salt: {after}\n")
        };
        format!(
            "{id}:\n  salt.function:\n    - name: cmd.run\n    - tgt: m1\n    - arg: ['echo {id} >> {}{script}']\n{need}",
            trace.display()
        )
    };
    let text = step("one", "", "")
        + &step("two", "; sleep 4; echo two-end", "one")
        + &step("three", "", "two");
    fleet.machine.write("srv/salt/orch/long.sls", &text);
    let jid = "20300101000000000001";
    let mut asking = fleet.start_run(&["state.orchestrate", "orch.long", "--jid", jid]);
    until("the second step has begun", || {
        fleet.machine.read("trace").is_some_and(|text| text.contains("two"))
    });
    fleet.kill_master();
    let _ = asking.wait();
    std::thread::sleep(Duration::from_millis(500));
    fleet.start_master();
    until("the run has ended", || {
        fleet.machine.read("trace").is_some_and(|text| text.contains("three"))
    });
    assert_eq!(fleet.machine.read("trace").unwrap_or_default(), "one\ntwo\nthree\n");
    until("the result is kept", || {
        fleet.run(&["jobs.lookup_jid", jid, "--out=json"]).out.contains("retcode")
    });
    let kept = fleet.run(&["jobs.lookup_jid", jid, "--out=json"]).out;
    assert_eq!(kept.matches("\"result\": true").count(), 3, "{kept}");
}

/// Between any two entries of the journal: a step that ran is not run again, and none is left out.
#[test]
fn the_master_dies_at_each_entry_of_the_journal() {
    let mut fleet = fleet();
    let trace = fleet.machine.path("trace").display().to_string();
    let text = format!(
        "minion:\n  salt.function:\n    - name: cmd.run\n    - tgt: m1\n    - arg: ['echo minion >> {trace}']\n\
         master:\n  salt.runner:\n    - name: salt.cmd\n    - arg: [cmd.shell, 'echo master >> {trace}']\n    - require:\n      - salt: minion\n\
         batch:\n  salt.function:\n    - name: cmd.run\n    - tgt: 'm*'\n    - batch: 1\n    - arg: ['echo batch >> {trace}']\n    - require:\n      - salt: master\n"
    );
    fleet.machine.write("srv/salt/orch/steps.sls", &text);
    let dying = "etc/salt/master.d/dying.conf";
    for entry in ["set_plan", "begin", "end", "finished"] {
        fleet.stop_master();
        fleet.machine.write("trace", "");
        fleet.machine.write(dying, &format!("halite: {{die_at: orchestration-{entry}}}\n"));
        fleet.start_master();
        let _ = fleet.start_run(&["state.orchestrate", "orch.steps"]).wait();
        fleet.wait_for_death();
        fleet.machine.write(dying, "");
        fleet.start_master();
        let lines = || fleet.machine.read("trace").unwrap_or_default();
        until("the run has ended", || lines().matches("batch").count() >= 2);
        assert_eq!(lines(), "minion\nmaster\nbatch\nbatch\n", "died after `{entry}`");
    }
}

/// What the master's schedule began goes on as well, and its end is told and kept.
#[test]
fn an_orchestration_of_the_schedule_survives_the_master() {
    let mut fleet = fleet();
    let trace = fleet.machine.path("trace").display().to_string();
    let step = |id: &str, need: &str| {
        format!(
            "{id}:\n  salt.function:\n    - name: cmd.run\n    - tgt: m1\n    - arg: ['echo {id} >> {trace}']\n{need}"
        )
    };
    let text = step("one", "") + &step("two", "    - require:\n      - salt: one\n");
    fleet.machine.write("srv/salt/orch/timed.sls", &text);
    fleet.stop_master();
    fleet.machine.write("trace", "");
    fleet.machine.write(
        "etc/salt/master.d/timed.conf",
        "schedule:\n  timed: {function: state.orchestrate, args: [orch.timed], seconds: 3600, run_on_start: True}\n",
    );
    let dying = "etc/salt/master.d/dying.conf";
    fleet.machine.write(dying, "halite: {die_at: orchestration-finished}\n");
    fleet.start_master();
    fleet.wait_for_death();
    assert_eq!(fleet.machine.read("trace").unwrap_or_default(), "one\n");
    // Not begun anew, so that what follows is the same run.
    fleet.machine.write("etc/salt/master.d/timed.conf", "");
    fleet.machine.write(dying, "");
    fleet.start_master();
    let lines = || fleet.machine.read("trace").unwrap_or_default();
    until("the run has ended", || lines().contains("two"));
    assert_eq!(lines(), "one\ntwo\n");
    until("its return is kept", || {
        let jobs = fleet.run(&["jobs.list_jobs", "search_function=state.orchestrate"]);
        jobs.out.contains("orch.timed")
    });
}

#[test]
fn the_master_dies_again_and_again() {
    let mut fleet = fleet();
    let trace = fleet.machine.path("trace");
    let mut text = String::new();
    for n in 0..6 {
        let need = match n {
            0 => String::new(),
            n => format!("    - require:\n      - salt: step{}\n", n - 1),
        };
        text += &format!(
            "step{n}:\n  salt.function:\n    - name: cmd.run\n    - tgt: m1\n    - arg: ['sleep 0.3; echo {n} >> {}; sleep 0.3']\n{need}",
            trace.display()
        );
    }
    fleet.machine.write("srv/salt/orch/steps.sls", &text);
    let mut asking = fleet.start_run(&["state.orchestrate", "orch.steps"]);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(1300));
        fleet.kill_master();
        fleet.start_master();
    }
    let _ = asking.wait();
    until("the run has ended", || {
        fleet.machine.read("trace").is_some_and(|text| text.contains('5'))
    });
    assert_eq!(fleet.machine.read("trace").unwrap_or_default(), "0\n1\n2\n3\n4\n5\n");
}

/// Asked before the run begins, so that nobody has to hurry.
#[test]
fn a_run_is_paused_resumed_and_ended_early() {
    let fleet = Fleet::new("");
    let step = |id: &str| {
        format!("{id}:\n  salt.runner:\n    - name: event.send\n    - arg: [seen/{id}]\n")
    };
    fleet.machine.write("srv/salt/orch/x.sls", &(step("one") + &step("two") + &step("three")));
    let followed = fleet.follow();
    let jid = "20300101000000000002";
    fleet.run(&["state.pause", jid, "two"]).code(0);
    let mut run = fleet.start_run(&["state.orchestrate", "orch.x", "--jid", jid]);
    until("the first step is done", || !followed.tags("seen/").is_empty());
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(followed.tags("seen/"), ["seen/one"], "it waits");
    fleet.run(&["state.resume", jid, "two"]).code(0);
    assert!(run.wait().expect("it ends").success());
    until("the rest follows", || followed.tags("seen/").len() == 3);
    let jid = "20300101000000000003";
    fleet.run(&["state.soft_kill", jid, "two"]).code(0);
    let (code, steps) =
        orchestrate(&fleet, &(step("one") + &step("two") + &step("three")), &["--jid", jid]);
    assert_eq!(code, 0);
    check(&steps, &[("one", "True", "Runner function 'event.send' executed.")]);
}

/// A rolling update as guides show it.
const ROLLING: &str = "\
{% set batch_size = salt['pillar.get']('update:batch_size', '25%') %}
{% set target = salt['pillar.get']('update:target', 'web*') %}

stage_1_update:
  salt.state:
    - tgt: {{ target }}
    - tgt_type: compound
    - batch: {{ batch_size }}
    - sls:
      - updates.system
      - updates.application
    - fail_minions: 5%

stage_1_verify:
  salt.function:
    - name: cmd.run
    - tgt: {{ target }}
    - arg:
      - HEALTH
    - require:
      - salt: stage_1_update

stage_2_update:
  salt.state:
    - tgt: {{ target }}
    - tgt_type: compound
    - batch: {{ batch_size }}
    - subset: 2  # Second batch
    - sls:
      - updates.system
      - updates.application
    - require:
      - salt: stage_1_verify

final_verification:
  salt.runner:
    - name: custom.verify_cluster_health
    - require:
      - salt: stage_2_update
";

/// A deployment as another guide shows it.
const DEPLOY: &str = "\
remove_from_lb:
  salt.function:
    - name: cmd.run
    - tgt: 'G@role:loadbalancer'
    - tgt_type: compound
    - arg:
      - 'echo disable web1 >> TRACE'

deploy_app:
  salt.state:
    - tgt: 'web1'
    - sls:
      - app.deploy
    - require:
      - salt: remove_from_lb

run_smoke_tests:
  salt.function:
    - name: cmd.run
    - tgt: 'web1'
    - arg:
      - 'SMOKE'
    - require:
      - salt: deploy_app

add_to_lb:
  salt.function:
    - name: cmd.run
    - tgt: 'G@role:loadbalancer'
    - tgt_type: compound
    - arg:
      - 'echo enable web1 >> TRACE'
    - require:
      - salt: run_smoke_tests
";

#[test]
fn updates_and_deployments_of_guides() {
    let mut fleet = Fleet::new("auto_accept: True\ntimeout: 20\ngather_job_timeout: 10\n");
    fleet.machine.write(
        "var/cache/salt/master/extmods/runners/custom.py",
        "def verify_cluster_health():\n    up = __salt__['manage.up']()\n    return {'healthy': len(up) == 4, 'up': sorted(up)}\n",
    );
    let trace = fleet.machine.path("trace").display().to_string();
    for sls in ["system", "application"] {
        fleet.machine.write(
            &format!("srv/salt/updates/{sls}.sls"),
            &format!(
                "{sls}:\n  cmd.run:\n    - name: echo {sls} {{{{ grains['id'] }}}} >> {trace}\n"
            ),
        );
    }
    fleet.machine.write("srv/salt/app/deploy.sls", "app:\n  test.succeed_with_changes: []\n");
    for id in ["web1", "web2", "web3"] {
        fleet.start_minion(id, "");
    }
    fleet.minion("lb1", "grains: {role: loadbalancer}");
    ["web1", "web2", "web3"].iter().for_each(|id| fleet.wait_for(id));

    let (code, steps) = orchestrate(&fleet, &ROLLING.replace("HEALTH", "/bin/true"), &[]);
    let results: Vec<&str> = steps.iter().map(|(_, result, _)| result.as_str()).collect();
    assert_eq!((code, results), (0, vec!["True"; 4]), "{steps:?}\n{}", fleet.log());
    let done = fleet.machine.read("trace").unwrap_or_default();
    // All three in the first stage, two of them in the second, each with both files.
    assert_eq!(done.lines().count(), 10, "{done}");
    for id in ["web1", "web2", "web3"] {
        let own: Vec<&str> = done.lines().filter(|line| line.ends_with(id)).collect();
        assert!(own.len() == 2 || own.len() == 4, "{done}");
        assert!(own.starts_with(&[&*format!("system {id}"), &*format!("application {id}")]));
    }
    // A failed check ends it there.
    let (code, steps) = orchestrate(&fleet, &ROLLING.replace("HEALTH", "/bin/false"), &[]);
    let results: Vec<&str> = steps.iter().map(|(_, result, _)| result.as_str()).collect();
    assert_eq!((code, results), (1, vec!["True", "False", "False", "False"]), "{steps:?}");

    fleet.machine.write("trace", "");
    let deploy = DEPLOY.replace("TRACE", &trace);
    let (code, _) = orchestrate(&fleet, &deploy.replace("SMOKE", "true"), &[]);
    assert_eq!(code, 0);
    assert_eq!(fleet.machine.read("trace").unwrap_or_default(), "disable web1\nenable web1\n");
    let (code, steps) = orchestrate(&fleet, &deploy.replace("SMOKE", "false"), &[]);
    let results: Vec<&str> = steps.iter().map(|(_, result, _)| result.as_str()).collect();
    assert_eq!((code, results), (1, vec!["True", "True", "False", "False"]), "{steps:?}");
    let trace = fleet.machine.read("trace").unwrap_or_default();
    assert_eq!(trace, "disable web1\nenable web1\ndisable web1\n", "it stays out of the balancer");
}

/// Opens what is encrypted, as a user's own renderer would.
const OPENS: &str = "
def render(data, saltenv='base', sls='', argline='', **kwargs):
    return {key: value[::-1] if isinstance(value, str) else value for key, value in data.items()}
";

#[test]
fn pillar_of_another_environment_and_encrypted() {
    let mut fleet = Fleet::prepared("");
    let root = fleet.machine.path("").display().to_string();
    let roots = format!(
        "pillar_roots: {{base: [{root}/srv/pillar], aws: [{root}/srv/pillar-aws]}}\n\
                 decrypt_pillar_renderers: [gpg, opens]\n"
    );
    fleet.machine.write("etc/salt/master.d/pillar.conf", &roots);
    fleet.start_master();
    fleet.machine.write("srv/pillar/top.sls", "base: {'*': [p]}\n");
    fleet.machine.write("srv/pillar/p.sls", "near: home\n");
    fleet.machine.write("srv/pillar-aws/top.sls", "aws: {'*': [p]}\n");
    fleet.machine.write("srv/pillar-aws/p.sls", "far: away\n");
    fleet.machine.write("var/cache/salt/master/extmods/renderers/opens.py", OPENS);
    let text = "x:\n  test.configurable_test_state:\n    - changes: False\n    - result: True\n    \
                - comment: \"{{ pillar.get('near') }} {{ pillar.get('far') }} {{ pillar.get('secret') }}\"\n";
    let comment = |more: &[&str]| {
        let (code, steps) = orchestrate(&fleet, text, more);
        assert_eq!(code, 0, "{steps:?}");
        steps.first().map(|(_, _, comment)| comment.clone()).unwrap_or_default()
    };
    assert_eq!(comment(&[]), "home away None", "all environments");
    assert_eq!(comment(&["pillarenv=aws"]), "None away None");
    assert_eq!(comment(&["pillar={\"secret\": \"nepo\"}", "pillar_enc=opens"]), "home away open");
    fleet
        .run(&["state.orchestrate", "orch.x", "pillar={\"a\": 1}", "pillar_enc=no_such"])
        .code(1)
        .says("Failed to decrypt pillar override");
}
