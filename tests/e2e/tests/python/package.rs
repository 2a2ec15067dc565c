//! Functions of the genuine package through the bridge: the same answers as genuine `salt-call`.

use std::process::Command;

use halite_e2e::{Machine, genuine};
use serde_json::Value;

/// Functions we do not have natively, or had not when this list was made; what becomes native is
/// still compared. Each must answer the same each time.
const CALLS: &[&[&str]] = &[
    &["xml.get_value", "{root}/data.xml", ".//b"],
    &["xml.get_attribute", "{root}/data.xml", ".//b"],
    &["ini.get_ini", "{root}/data.ini"],
    &["ini.get_option", "{root}/data.ini", "s", "k"],
    &["ini.get_section", "{root}/data.ini", "s"],
    &["jinja.import_yaml", "map.yaml"],
    &["jinja.import_json", "map.json"],
    &["jinja.load_map", "map.jinja", "values"],
    &["salt_version.get_release_number", "Oxygen"],
    &["salt_version.equal", "Oxygen"],
    &["salt_version.greater_than", "Oxygen"],
    &["salt_version.less_than", "Oxygen"],
    &["uwsgi.stats", "no/such"],
    &["peeringdb.x"],
    &["nacl.nothing"],
    &["genesis.avail_platforms"],
    &["hashutil.base64_encodestring", "hello"],
    &["hashutil.md5_digest", "hello"],
    &["dnsutil.parse_hosts", "{root}/hosts"],
    &["dnsutil.parse_zone", "{root}/zone"],
    &["solrcloud.alias_exists"],
    &["augeas.nothing"],
    &["namecheap_domains.x"],
    &["keystore.x"],
    &["chronos.x"],
    &["out.string_format", "{a: 1}", "out=json"],
    &["out.html_format", "{a: 1}", "out=nested"],
    &["pillar.filter_by", "{a: {x: 1}, default: {x: 2}}", "pillar_name=p"],
    &["saltcheck.x"],
    &["toml.x"],
    &["textfsm.x"],
    &["seed.x"],
    &["inspector.x"],
    &["cryptdev.crypttab", "{root}/crypttab"],
    &["extfs.x"],
    &["logrotate.get", "/etc/logrotate.d/none"],
    &["beacons.list"],
    &["schedule.list"],
    &["config.dot_vals", "nothing"],
    &["sdb.x"],
    &["ansible.x"],
    &["pkg_resource.check_extra_requirements", "a", "1"],
    &["netaddress.list_cidr_ips", "192.168.0.0/30"],
    &["boto3_sns.x"],
    &["consul.x"],
    &["opsgenie.x"],
    &["random_org.x"],
    &["sqlite3.version"],
    &["sqlite3.sqlite_version"],
    &["system.get_system_date"],
    &["archive.cmd_unzip_missing"],
    &["highstate_doc.read_file", "{root}/data.ini"],
    &["virtualenv.virtualenv_ver_missing"],
    &["tuned.x"],
    &["runit.x"],
    &["statuspage.x"],
    &["file.stats_missing", "/x"],
    &["key.finger_missing"],
    &["vault_missing.x"],
    &["smtp.x"],
];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

#[test]
fn the_same_answers_as_genuine() {
    let python = genuine::python();
    let machine = Machine::new();
    let config = machine.read("etc/salt/minion").expect("a configuration");
    machine.write("etc/salt/minion", &format!("{config}halite: {{python: {}}}\n", python.display()));
    machine.write("data.xml", "<a><b c='d'>text</b></a>");
    machine.write("data.ini", "[s]\nk = v\nl = w\n");
    machine.write("hosts", "127.0.0.1 localhost\n10.0.0.1 db db1\n");
    machine.write("zone", "$ORIGIN example.org.\n$TTL 3600\n@ IN SOA ns hostmaster (1 2 3 4 5)\nwww IN A 10.0.0.1\n");
    machine.write("crypttab", "data /dev/sdb none luks\n");
    machine.write("srv/salt/map.yaml", "a: [1, 2]\n");
    machine.write("srv/salt/map.json", "{\"a\": 1}\n");
    machine.write("srv/salt/map.jinja", "{% set values = {'a': grains['kernel']} %}\n");
    let root = machine.path("").display().to_string();
    let mut same = 0;
    let mut wrong = Vec::new();
    for call in CALLS {
        let mut args: Vec<String> = ["--local", "--out=json", "--out-indent=-1", "-l", "quiet"].map(String::from).into();
        args.extend(call.iter().map(|word| word.replace("{root}", root.trim_end_matches('/'))));
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = Command::new(python.with_file_name("salt-call"));
        command.arg("-c").arg(machine.path("etc/salt")).args(&words);
        let theirs = machine.run(&mut command);
        let ours = machine.call(&words);
        match (json(&theirs.out), json(&ours.out)) {
            (theirs, ours) if theirs == ours && !theirs.is_null() => same += 1,
            (Value::Null, Value::Null) => {}
            (theirs, ours) => wrong.push(format!("{call:?}: {theirs} and {ours}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(same >= 20, "only {same} functions answered at all");
}
