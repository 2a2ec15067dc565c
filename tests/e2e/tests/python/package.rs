//! Functions of the genuine package through the bridge: the same answers as in genuine Salt.
//!
//! One module asks for all of them, once under genuine `salt-call` and once under ours with an
//! interpreter that has the package. At least forty modules must not be native: those are the ones
//! that go through the bridge. The newest release has fewer of them that load everywhere (it left
//! half of Salt's modules to extensions), so an older one is asked, too.

use std::{collections::BTreeSet, process::Command};

use halite_e2e::{Machine, genuine};
use serde_json::Value;

/// Asks each of the calls in a file; exceptions are answers, too.
const MODULE: &str = r#"
import json


TEXTS = {
    "IOS": "hostname one\ninterface Gi1\n ip address 10.0.0.1 255.255.255.0\n shutdown\n",
    "IOS2": "hostname two\ninterface Gi1\n ip address 10.0.0.2 255.255.255.0\nntp server 10.0.0.9\n",
}


def mark(text):
    __context__["marks"] = __context__.get("marks", 0) + 1
    return [text, __context__["marks"], __grains__["id"]]


def every(path, side):
    found = []
    with open(path) as f:
        calls = json.load(f)
    for call in calls:
        words = [word.replace("SIDE", side) for word in call[1:]]
        args = [word for word in words if "=" not in word and "@" not in word]
        kwargs = dict(word.split("=", 1) for word in words if "=" in word)
        kwargs.update((name, TEXTS[text]) for name, text in (word.split("@", 1) for word in words if "@" in word))
        try:
            found.append(__salt__[call[0]](*args, **kwargs))
        except KeyError as error:
            found.append("missing: {}".format(error))
        except Exception as error:
            found.append("{}: {}".format(type(error).__name__, error))
    return json.loads(json.dumps(found, default=str).replace(side, "SIDE"))
"#;

/// Function and arguments.
type Calls = &'static [&'static [&'static str]];

/// `SIDE` is a folder of its own for each side.
const CALLS: Calls = &[
    &["xml.get_value", "SIDE/data.xml", ".//b"],
    &["xml.get_attribute", "SIDE/data.xml", ".//b"],
    &["xml.set_value", "SIDE/data.xml", ".//b", "new"],
    &["xml.set_attribute", "SIDE/data.xml", ".//b", "c", "e"],
    &["xml.get_value", "SIDE/data.xml", ".//b"],
    &["ini.get_ini", "SIDE/data.ini"],
    &["ini.get_option", "SIDE/data.ini", "s", "k"],
    &["ini.get_section", "SIDE/data.ini", "s"],
    &["ini.remove_option", "SIDE/data.ini", "s", "k"],
    &["ini.remove_section", "SIDE/data.ini", "s"],
    &["ini.get_ini", "SIDE/data.ini"],
    &["jinja.import_yaml", "map.yaml"],
    &["jinja.import_json", "map.json"],
    &["jinja.load_map", "map.jinja", "values"],
    &["salt_version.get_release_number", "Oxygen"],
    &["salt_version.equal", "Oxygen"],
    &["salt_version.greater_than", "Oxygen"],
    &["salt_version.less_than", "Oxygen"],
    &["dnsutil.parse_hosts", "SIDE/hosts"],
    &["dnsutil.hosts_append", "SIDE/hosts", "10.0.0.2", "x"],
    &["dnsutil.hosts_remove", "SIDE/hosts", "db"],
    &["dnsutil.parse_hosts", "SIDE/hosts"],
    &["dnsutil.check_ip", "10.0.0.1"],
    &["cryptdev.crypttab", "SIDE/crypttab"],
    &["sqlite3.version"],
    &["sqlite3.sqlite_version"],
    &["sqlite3.modify", "SIDE/db", "create table t (a int)"],
    &["sqlite3.modify", "SIDE/db", "insert into t values (7)"],
    &["sqlite3.fetch", "SIDE/db", "select a from t"],
    &["sqlite3.tables", "SIDE/db"],
    &["sqlite3.indices", "SIDE/db"],
    &["highstate_doc.read_file", "SIDE/hosts"],
    &["config.dot_vals", "nothing"],
    &["beacons.list"],
    &["schedule.list"],
    &["schedule.is_enabled", "x"],
    &["slsutil.path_exists", "map.yaml"],
    &["slsutil.file_exists", "map.yaml"],
    &["sysfs.read", "/sys/class/net/lo/mtu"],
    &["sysfs.attr", "/sys/class/net/lo"],
    &["salt_proxy.is_running", "x"],
    &["sqlite3.indexes", "SIDE/db"],
    &["iosconfig.tree", "config@IOS"],
    &["iosconfig.clean", "config@IOS"],
    &["iosconfig.diff_text", "candidate_config@IOS", "running_config@IOS2"],
    &["iosconfig.diff_tree", "candidate_config@IOS", "running_config@IOS2"],
    &["iosconfig.merge_text", "initial_config@IOS", "merge_config@IOS2"],
    &["iosconfig.merge_tree", "initial_config@IOS", "merge_config@IOS2"],
    &["iosconfig.merge_diff", "initial_config@IOS", "merge_config@IOS2"],
    &["highstate_doc.markdown_basic_jinja_template"],
    &["highstate_doc.markdown_default_jinja_template"],
    &["highstate_doc.markdown_full_jinja_template"],
    &["highstate_doc.read_file", "SIDE/data.ini"],
    &["cryptdev.crypttab", "SIDE/crypttab"],
    &["cryptdev.set_crypttab", "new", "/dev/sdc", "none", "luks", "SIDE/crypttab"],
    &["cryptdev.crypttab", "SIDE/crypttab"],
    &["cryptdev.rm_crypttab", "data", "SIDE/crypttab"],
    &["cryptdev.active"],
    &["pyenv.is_installed"],
    &["pyenv.list"],
    &["pyenv.versions"],
    &["pyenv.default"],
    &["rest_sample_utils.get_test_string"],
    &["rest_sample_utils.fix_outage"],
    &["mount.automaster", "SIDE/nothing"],
    &["mount.filesystems", "SIDE/nothing"],
    &["mount.vfstab", "SIDE/nothing"],
    &["out.out_format", "text"],
    &["out.string_format", "text", "json"],
    &["out.html_format", "text"],
    &["pam.read_file", "SIDE/pam"],
    &["salt_proxy.is_running", "x"],
    &["chroot.exist", "SIDE/nothing"],
    &["chroot.in_chroot"],
    &["gpg.list_keys", "gnupghome=SIDE/gnupg"],
    &["gpg.list_secret_keys", "gnupghome=SIDE/gnupg"],
    &["syslog_ng.set_config_file", "SIDE/syslog"],
    &["syslog_ng.get_config_file"],
    &["syslog_ng.version"],
    &["kernelpkg.active"],
    &["kernelpkg.list_installed"],
    &["xfs.devices"],
    &["devmap.multipath_list"],
    &["supervisord.options", "x", "SIDE/supervisor"],
    &["scsi.ls"],
    &["key.finger"],
    &["locate.version"],
    &["xml.get_value", "SIDE/data.xml", ".//b"],
    &["ini.get_ini", "SIDE/data.ini"],
    &["jinja.load_map", "map.jinja", "values"],
    &["salt_version.equal", "Oxygen"],
    &["dnsutil.parse_hosts", "SIDE/hosts"],
    &["schedule.is_enabled", "x"],
    &["slsutil.path_exists", "map.yaml"],
    &["sdb.get", "plain"],
    &["no_such_module.x"],
    &["baredoc.module_docs", "sqlite3", "version"],
    &["baredoc.list_modules", "sqlite3"],
    &["baredoc.list_modules", "ask"],
    &["baredoc.list_states", "file"],
    // A template of the package's calls a user's function, and one that loads everything.
    &["jinja.load_map", "users.jinja", "values"],
    &["devinfo.filter"],
    &["ask.mark", "x"],
    &["devinfo.hwinfo"],
    &["ethtool.show_driver", "no0"],
    &["artifactory.get_latest_release", "http://127.0.0.1:1", "r", "g", "a", "jar"],
    &["vsphere.get_proxy_type"],
    &["nxos.ping"],
    &["nxos_api.show", "version"],
    &["slack.list_rooms", "api_key=x"],
    &["seed.mkconfig", "tmp=SIDE/seed", "id_=x"],
    &["ret.get_minions", "nothing"],
    &["cloud.list_sizes", "nowhere"],
];

/// What 3006 has besides. Most of it wants a server or a program that is not there, and says so.
const OLDER: Calls = &[
    &["baredoc.list_modules", "sqlite3"],
    &["jinja.load_map", "users.jinja", "values"],
    &["ask.mark", "x"],
    &["genesis.avail_platforms"],
    &["composer.did_composer_install", "SIDE/nothing"],
    &["dnsmasq.get_config", "SIDE/dnsmasq"],
    &["dnsmasq.set_config", "SIDE/dnsmasq", "port=53"],
    &["dnsmasq.get_config", "SIDE/dnsmasq"],
    &["freezer.list"],
    &["freezer.status", "x"],
    &["inspector.snapshots"],
    &["openscap.xccdf", "eval"],
    &["parallels.list_vms"],
    &["rbenv.is_installed"],
    &["rbenv.list"],
    &["rbenv.versions"],
    &["rvm.is_installed"],
    &["rvm.list"],
    &["s6.get_all"],
    &["s6.available", "x"],
    &["solrcloud.collection_creation_options"],
    &["statuspage.retrieve"],
    &["vbox_guest.additions_version"],
    &["vbox_guest.list_shared_folders_users"],
    &["zabbix.get_zabbix_id_mapper"],
    &["opsgenie.post_data"],
    &["random_org.getUsage"],
    &["telegram.post_message", "text"],
    &["pushover.post_message"],
    &["serverdensity_device.get_sd_auth", "x"],
    &["namecheap_ssl.get_list"],
    &["namecheap_users.get_balances"],
    &["nagios_rpc.host_status"],
    &["msteams.post_card", "m"],
    &["mattermost.post_message", "m"],
    &["telemetry.get_alarms", "x"],
    &["container_resource.cache_file", "salt://nothing"],
    &["django.command", "x", "y"],
    &["vault.clear_token_cache"],
    &["modjk.get_running", "nothing"],
    &["introspect.running_service_owners"],
    &["consul.list"],
    &["k8s.get_namespaces"],
];

#[test]
fn the_same_answers_as_genuine() {
    let [oldest, .., newest] = genuine::VERSIONS;
    let machine = Machine::new();
    let native = machine.call(&["sys.list_functions", "--out=json"]).code(0).out;
    let native: Value = serde_json::from_str(&native).expect("JSON");
    let native: BTreeSet<&str> =
        native["local"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert!(native.contains("test.ping"), "{native:?}");
    let here: BTreeSet<&str> = native.iter().filter_map(|name| name.split('.').next()).collect();
    let mut bridged = BTreeSet::new();
    for (release, calls, most_missing) in [(newest, CALLS, 7), (oldest, OLDER, 0)] {
        let answers = compare(release, calls);
        // A function that runs, and misses another of a program that is not installed, is there.
        let is_missing = |call: &[&str], answer: &Value| {
            answer.as_str().is_some_and(|text| text == format!("missing: '{}'", call[0]))
        };
        let (missing, found): (Vec<_>, Vec<_>) =
            calls.iter().zip(&answers).partition(|(call, answer)| is_missing(call, answer));
        assert!(missing.len() <= most_missing, "{release}: {missing:?}");
        let modules = found.iter().filter_map(|(call, _)| call.first()?.split('.').next());
        bridged.extend(modules.filter(|module| !here.contains(module)));
    }
    assert!(bridged.len() >= 40, "only {} modules are not native: {bridged:?}", bridged.len());
}

#[test]
fn what_a_package_has_is_listed() {
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let python = genuine::programs(genuine::VERSIONS[2]).join("python");
    machine
        .write("etc/salt/minion", &format!("{config}halite: {{python: {}}}\n", python.display()));
    let doc = &["sys.doc", "highstate_doc.read_file"];
    machine.call(doc).code(0).says("output the contents of a file");
    let functions = machine.call(&["sys.list_functions", "highstate_doc", "test.p*"]).code(0);
    functions.says("- highstate_doc.read_file").says("- test.ping");
    machine.call(&["sys.list_modules"]).code(0).says("- highstate_doc").says("- test");
    machine.call(&["sys.list_functions", "no.such"]).code(0).says("local:\n");
}

/// Asks both makes the same with the package of one release; returns the answers, which are equal.
fn compare(release: &str, calls: Calls) -> Vec<Value> {
    let programs = genuine::programs(release);
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    let python = programs.join("python");
    machine
        .write("etc/salt/minion", &format!("{config}halite: {{python: {}}}\n", python.display()));
    for side in ["genuine", "through"] {
        machine.write(&format!("{side}/data.xml"), "<a><b c='d'>text</b></a>");
        machine.write(&format!("{side}/data.ini"), "[s]\nk = v\nl = w\n");
        machine.write(&format!("{side}/hosts"), "127.0.0.1 localhost\n10.0.0.1 db db1\n");
        machine.write(&format!("{side}/crypttab"), "data /dev/sdb none luks\n");
        machine.write(&format!("{side}/pam"), "auth required pam_unix.so nullok\n# x\n");
        machine.write(&format!("{side}/supervisor"), "[program:x]\ncommand=/bin/true\n");
        machine.write(&format!("{side}/gnupg/.keep"), "");
        machine.write(&format!("{side}/dnsmasq"), "port=5353\n");
    }
    machine.write("srv/salt/map.yaml", "a: [1, 2]\n");
    machine.write("srv/salt/map.json", "{\"a\": 1}\n");
    machine.write("srv/salt/map.jinja", "{% set values = {'a': grains['kernel']} %}\n");
    machine.write(
        "srv/salt/users.jinja",
        "{% set values = {'a': salt['ask.mark']('b'), 'c': salt.ask.mark('d'), \
         'in': 'ask.mark' in salt, 'out': 'ask.none' in salt, 'e': opts.extension_modules} %}\n",
    );
    machine.write("srv/salt/_modules/ask.py", MODULE);
    machine.write("calls", &serde_json::to_string(calls).expect("plain data"));
    machine.call(&["saltutil.sync_modules"]).code(0);
    let folder = |side: &str| machine.path(side).display().to_string();
    let list = folder("calls");
    let args = |side: &str| {
        let own = folder(side);
        ["--local", "--out=json", "-l", "quiet", "ask.every", &list, &own].map(str::to_owned)
    };
    let mut command = Command::new(programs.join("salt-call"));
    command.arg("-c").arg(machine.path("etc/salt")).args(args("genuine"));
    let theirs = machine.run(&mut command);
    let own = args("through");
    let ours = machine.call(&own.iter().map(String::as_str).collect::<Vec<_>>());
    let answers = |text: &str| -> Vec<Value> {
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        found["local"].as_array().cloned().unwrap_or_default()
    };
    let (theirs, ours) = (answers(&theirs.out), answers(&ours.out));
    assert_eq!((theirs.len(), ours.len()), (calls.len(), calls.len()), "{theirs:?} {ours:?}");
    let mut wrong = Vec::new();
    for (call, (theirs, ours)) in calls.iter().zip(theirs.iter().zip(&ours)) {
        if theirs != ours {
            wrong.push(format!("{call:?}: genuine {theirs}, through the bridge {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{release}: {}", wrong.join("\n"));
    theirs
}
