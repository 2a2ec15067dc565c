"""Records how genuine Salt 3008 reads configuration files.

    python record.py > cases.json       (with a Python that has Salt; as root, for it writes to /cases)

Every case is a handful of files below /cases; what is recorded are the options that differ from
those of an empty configuration of the same role, and what Salt logs. `cases.rs` compares.
"""

import contextlib
import io
import json
import logging
import os
import shutil
import socket
import platform
import sys

ROOT = "/cases"
os.environ["HOME"] = "/home/op"
for name in list(os.environ):
    if name.startswith(("SALT_", "XDG_")):
        del os.environ[name]
sys.argv = ["halite-cases"]

import salt.config  # noqa: E402
import salt.utils.network  # noqa: E402

salt.config._DFLT_IPC_WBUFFER = int((8 << 30) * 0.05 * 0.5)

CASES = []
fopen = salt.utils.files.fopen


def without_own_id(path, *args, **kwargs):
    """The id this machine remembers is nobody's business."""
    if path == "/etc/salt/minion_id":
        raise FileNotFoundError(path)
    return fopen(path, *args, **kwargs)


salt.utils.files.fopen = without_own_id


def case(name, role, main=None, files=None, env=None, host="web1.example", **more):
    files = dict(files or {})
    if main is not None:
        files[f"{ROOT}/etc/{'master' if role in ('client', 'api') else role}"] = main
    CASES.append(
        {"name": name, "role": role, "files": files, "env": env or {}, "host": host, **more}
    )


M, N = "master", "minion"
E = ROOT + "/etc"

# --- nothing, little, broken ---------------------------------------------------------------------
for role in (M, N, "client", "api", "proxy", "syndic"):
    case(f"{role}: no files", role, baseline=True)
case("empty file", M, "")
case("comment only", M, "# nothing\n")
case("null document", M, "~\n")
case("false document", M, "false\n")
case("list document", M, "- a\n- b\n")
case("text document", M, "hello\n")
case("number document", N, "5\n")
case("syntax error", M, "a: b: c\n")
case("tab", N, "a:\n\tb: c\n")
case("duplicate key", M, "user: a\nuser: b\n")
case("unclosed quote", N, "id: 'x\n")
case("jinja is not rendered", M, "user: {{ 5 }}\n")
case("document marker", M, "---\nuser: salt\n")
case("two documents", M, "user: a\n---\nuser: b\n")
case("unknown options stay", M, "my_own: {a: 1}\nanother.dotted: 2\n")
case("int keys stay", M, "5: five\nuser: salt\n")
case("windows line ends", M, "user: salt\r\nret_port: 4510\r\n")
case("aliases", M, "a: &x [1, 2]\nb: *x\n")

# --- includes ---------------------------------------------------------------------------------------
case("master.d wins", M, "user: a\n", {E + "/master.d/x.conf": "user: b\n"})
case("only master.d", M, None, {E + "/master.d/x.conf": "user: b\n"})
case("only minion.d", N, None, {E + "/minion.d/x.conf": "user: b\n"})
case("order of names", M, "", {E + "/master.d/b.conf": "user: b\n", E + "/master.d/a.conf": "user: a\n"})
case("order is by byte", M, "", {E + "/master.d/B.conf": "user: B\n", E + "/master.d/a.conf": "user: a\n"})
case("numbers in names", M, "", {E + "/master.d/10.conf": "user: ten\n", E + "/master.d/9.conf": "user: nine\n"})
case("other suffixes are not read", M, "", {E + "/master.d/a.yaml": "user: a\n", E + "/master.d/a.conf.bak": "user: b\n"})
case("hidden files are not read", M, "", {E + "/master.d/.a.conf": "user: a\n"})
case("sub-folders are not read", M, "", {E + "/master.d/sub/a.conf": "user: a\n"})
case("dicts of included files are merged", M, "", {
    E + "/master.d/a.conf": "peer: {a: [x]}\nfile_roots:\n  base: [/a]\n",
    E + "/master.d/b.conf": "peer: {b: [y]}\nfile_roots:\n  base: [/b]\n  dev: [/d]\n",
})
case("lists of included files are joined", M, "", {
    E + "/master.d/a.conf": "reactor: [a, b]\n", E + "/master.d/b.conf": "reactor: [b, c, c]\n",
})
case("included replaces main as a whole", M, "file_roots:\n  base: [/main]\n  dev: [/dev1]\n", {
    E + "/master.d/a.conf": "file_roots:\n  base: [/inc]\n",
})
case("included list against dict", M, "", {
    E + "/master.d/a.conf": "nodegroups: {a: x}\n", E + "/master.d/b.conf": "nodegroups: [b: y]\n",
})
case("schedules are merged by job", N, "", {
    E + "/minion.d/a.conf": "schedule:\n  j: {function: a.b, seconds: 5, args: [1]}\n",
    E + "/minion.d/b.conf": "schedule:\n  j: {function: c.d, args: [2]}\n  k: {function: e.f}\n",
})
case("broken included file is left out", M, "user: a\n", {E + "/master.d/a.conf": "b: c: d\n", E + "/master.d/b.conf": "ret_port: 9\n"})
case("included list is left out", M, "user: a\n", {E + "/master.d/a.conf": "[1, 2]\n"})
case("broken included file, minion", N, "user: a\n", {E + "/minion.d/a.conf": "b: c: d\n"})
case("empty included file", M, "user: a\n", {E + "/master.d/a.conf": ""})
case("include, relative", M, "include: other/*.cf\n", {E + "/other/a.cf": "user: x\n"})
case("include, absolute", M, f"include: {ROOT}/far/a\n", {ROOT + "/far/a": "user: x\n"})
case("include, list", M, "include:\n  - one\n  - two\n", {E + "/one": "user: 1a\nret_port: 1\n", E + "/two": "user: 2b\n"})
case("include wins over master.d", M, "include: one\n", {E + "/one": "user: inc\n", E + "/master.d/a.conf": "user: d\n"})
case("include without match", M, "include: nothing/*.conf\n")
case("include without match, plain", N, "include: nothing\n")
case("include nested", M, "include: one\n", {E + "/one": "include: sub/two\nuser: 1a\nret_port: 1\n", E + "/sub/two": "user: 2b\n"})
case("include nested relative to the file", M, "include: sub/one\n", {E + "/sub/one": "include: two\n", E + "/sub/two": "user: near\n", E + "/two": "user: far\n"})
case("include from master.d", M, "", {E + "/master.d/a.conf": "include: extra\nuser: outer\n", E + "/master.d/extra": "user: inner\n"})
case("include empty", M, "include: []\nuser: a\n")
case("include null", M, "include:\nuser: a\n")
case("default_include changed", M, "default_include: conf/*.cfg\n", {E + "/conf/a.cfg": "user: a\n", E + "/master.d/a.conf": "user: d\n"})
case("default_include off", M, "default_include: ''\n", {E + "/master.d/a.conf": "user: d\n"})
case("default_include in master.d has no effect", M, "", {E + "/master.d/a.conf": "default_include: other/*\n", E + "/other/x": "user: x\n"})

# --- root_dir -------------------------------------------------------------------------------------------
case("root_dir", M, "root_dir: /r\n")
case("root_dir, minion", N, "root_dir: /r\n")
case("root_dir with slash", M, "root_dir: /r/\n")
case("root_dir and own paths", M, "root_dir: /r\npki_dir: /keys\ncachedir: cache\nlog_file: /r/log/x\npidfile: pid\n")
case("path below root_dir", M, "root_dir: /r\npki_dir: /r/pki\n")
case("path beside root_dir", M, "root_dir: /r\npki_dir: /rx/pki\n")
case("path equal to root_dir", M, "root_dir: /r\npki_dir: /r\n")
case("path with dots", M, "pki_dir: /a/../b//c/\n")
case("path empty", M, "pki_dir: ''\n")
case("syslog is no path", M, "root_dir: /r\nlog_file: file:///dev/log\nkey_logfile: udp://loghost:10514\n")
case("log file null", N, "root_dir: /r\nlog_file:\n")
case("relative log file", N, "log_file: a.log\n")
case("autosign files", M, "root_dir: /r\nautosign_file: /etc/salt/autosign.conf\nautoreject_file: rej\nautosign_grains_dir: /g\n")
case("options root_dir leaves alone", M, "root_dir: /r\nfile_roots:\n  base: [/srv/x]\nmaster_sign_key_name: /k\n")
case("root_dir, api", "api", "root_dir: /r\napi_pidfile: /p\n")
case("root_dir, client", "client", "root_dir: /r\n")
case("log_dir", M, "log_dir: /logs\n")
case("log_dir and relative file", N, "log_dir: /logs\nlog_file: m.log\n")
case("log_dir and absolute file", N, "log_dir: /logs\nlog_file: /x/m.log\n")
case("sock_dir too long", M, "sock_dir: /var/run/salt/a/very/long/path/that/goes/on/and/on\n")
case("sock_dir just fits", N, "cachedir: /0123456789\nsock_dir: /01234567890123456789\n")
case("sock_dir one too long", N, "cachedir: /0123456789\nsock_dir: /012345678901234567890\n")
case("short cachedir moves sock_dir", M, "cachedir: /c\n")
case("cachedir moves the rest", M, "cachedir: /var/cache/salt/other\n")
case("extension_modules", M, "extension_modules: /ext\n")
case("extension_modules empty", N, "extension_modules: ''\n")
case("utils_dirs", N, "utils_dirs: [/u]\n")

# --- ids ----------------------------------------------------------------------------------------------
case("id", N, "id: db7\n")
case("id as number", N, "id: 12345\n")
case("id as float", N, "id: 1.50\n")
case("id as bool", N, "id: yes\n")
case("id empty", N, "id: ''\n")
case("id null becomes text", N, "id:\n")
case("id from host", N, "", host="Db9.Example.COM")
case("id lower", N, "minion_id_lowercase: true\n", host="Db9.Example.COM")
case("id without domain", N, "minion_id_remove_domain: true\n", host="db9.example.com")
case("id without one domain", N, "minion_id_remove_domain: Example.com\n", host="db9.example.com")
case("id without another domain", N, "minion_id_remove_domain: example.org\n", host="db9.example.com")
case("id remembered", N, f"root_dir: {ROOT}/r\n", {ROOT + "/r/etc/salt/minion_id": "old-id\nsecond\n"})
case("id remembered, blanks", N, f"root_dir: {ROOT}/r\n", {ROOT + "/r/etc/salt/minion_id": "  old-id  \n"})
case("id remembered, empty", N, f"root_dir: {ROOT}/r\n", {ROOT + "/r/etc/salt/minion_id": "\nx\n"})
case("id remembered, localhost", N, f"root_dir: {ROOT}/r\n", {ROOT + "/r/etc/salt/minion_id": "localhost\n"})
case("id not remembered", N, f"root_dir: {ROOT}/r\nminion_id_caching: false\n", {ROOT + "/r/etc/salt/minion_id": "old-id\n"})
case("id beside -c is not it", N, "", {E + "/minion_id": "wrong\n"})
case("append_domain", N, "id: a\nappend_domain: example.com\n")
case("append_domain present", N, "id: a.example.com\nappend_domain: example.com\n")
case("append_domain and dot", N, "id: a.\nappend_domain: example.com\n")
case("append_domain to remembered", N, f"root_dir: {ROOT}/r\nappend_domain: example.com\n", {ROOT + "/r/etc/salt/minion_id": "old\n"})
case("append_domain to address", N, "append_domain: example.com\n", host="10.1.2.3")
case("master id", M, "id: chief\n")
case("master id from host", M, "append_domain: corp\n", host="boss")
case("localhost is no id", N, "", host="localhost.localdomain", other_host="realname")
case("append_minionid_config_dirs", N, "id: x\nappend_minionid_config_dirs: [pki_dir, cachedir, pidfile, default_include, extension_modules, log_file]\n")

# --- values -------------------------------------------------------------------------------------------
case("wrong types", M, "ret_port: abc\nauto_accept: 'yes'\nfile_roots: []\nworker_threads: 5\nreactor: x\npeer: 3\nuser: [a]\n")
case("convertible types", M, "ret_port: '4511'\npublish_port: 4.5\nkeep_jobs_seconds: true\nuser: 5\nssh_timeout: 7\nssh_scan_timeout: '0.5'\n")
case("nulls", M, "user:\nret_port:\nauto_accept:\nreactor:\npeer:\next_pillar:\n")
case("several types", N, "master: 5\nmaster_port: 4.5\nstate_queue: '3'\ndisabled_requisites: {a: 1}\nminion_id_remove_domain: 0\nmaster_uri_format: 1\n")
case("several types, bad", N, "master: {a: b}\ndiscovery: 'on'\nretry_dns_count: x\nid_function: 5\nid: x\n")
case("dict from pairs", M, "peer: [[a, b]]\nexternal_auth: [{a: 1}]\n")
case("sdb is anything", M, "ret_port: sdb://x/y\n")
case("yaml typing", M, "hash_type: SHA512\ntimeout: 0x10\nuser: 0644\nkeysize: 1:30\nssh_user: 2024-01-01\n")
case("booleans", M, "auto_accept: on\nopen_mode: yes\nfile_recv: off\njob_cache: n\n")
case("auto_accept must be true", M, "auto_accept: 1\nopen_mode: 'true'\n")
case("open_mode, minion", N, "open_mode: 'yes'\n")
case("hash_type lower", N, "hash_type: MD5\n")
case("file_roots globs", M, f"file_roots:\n  base: ['{ROOT}/t/b*', '{ROOT}/[s-u]/?']\n", {ROOT + "/t/bb/x": "", ROOT + "/t/a/x": ""})
case("file_roots no match", M, f"file_roots:\n  base: ['{ROOT}/nope/*', /plain]\n")
case("file_roots text", M, "file_roots: /srv\n")
case("file_roots text per env", M, "file_roots:\n  base: /srv\n  dev:\n")
case("file_roots __env__", M, "file_roots:\n  base: [/b]\n  __env__: [/e/__env__]\n")
case("file_roots numbers", N, "file_roots:\n  base: [5, /x]\n")
case("pillar_roots text, master", M, "pillar_roots: x\n")
case("pillar_roots text, minion", N, "pillar_roots: x\n")
case("pillar_roots null", N, "pillar_roots:\n")
case("saltenv", N, "saltenv: dev\n")
case("environment", N, "environment: dev\n")
case("environment and saltenv", N, "environment: dev\nsaltenv: prod\n")
case("environment, master", M, "environment: dev\n")
case("backends", M, "fileserver_backend: [git, roots, hg, svn, minion, gitfs, s3fs]\n")
case("backends, minion", N, "fileserver_backend: [git]\n")
case("nodegroups", M, "nodegroups:\n  g1: L@a,b\n  g2: [a, b]\n")
case("nodegroups null", M, "nodegroups:\n")
case("nodegroups list", M, "nodegroups:\n  - g1: L@a\n  - g2: N@g1\n")
case("nodegroups odd list", M, "nodegroups:\n  - g1: a\n    g2: b\n")
case("worker_threads and peer", M, "worker_threads: 1\npeer:\n  .*: [test.ping]\n")
case("worker_threads", M, "worker_threads: 1\n")
case("worker pools", M, "worker_pools:\n  auth: {worker_count: 2, commands: [_auth]}\n  rest: {worker_count: 3, commands: ['*']}\n")
case("worker pools off", M, "worker_pools_enabled: false\n")
case("worker pools bad", M, "worker_pools:\n  a: {worker_count: 0, commands: [x]}\n  b: {commands: []}\n  c: {worker_count: 1, commands: [x]}\n")
case("file_ignore text", M, "file_ignore_regex: '/\\.git($|/)'\nfile_ignore_glob: '*.pyc'\n")
case("external_auth rest", M, "external_auth:\n  rest: {'^url': x}\n")
case("cluster without peers", M, "cluster_id: c\n")
case("cluster", M, "cluster_id: c\ncluster_peers: [10.0.0.1]\ncluster_pki_dir: /shared\n")
case("cluster peers alone", M, "cluster_peers: [10.0.0.1]\ncluster_pki_dir: /shared\n")
case("cluster_port", M, "cluster_port: 9999\n")
case("ssl true", M, "ssl: true\n")
case("ssl names", N, "ssl:\n  keyfile: /k\n  cert_reqs: CERT_REQUIRED\n  ssl_version: PROTOCOL_TLSv1_2\n")
case("ssl false", N, "ssl: false\n")
case("ssl bad", N, "ssl:\n  cert_reqs: NOPE\n")
case("discovery", M, "discovery: true\n")
case("discovery, minion", N, "discovery:\n  match: all\n  mapping: {a: b}\n")
case("discovery bad", N, "discovery:\n  nope: 1\n")
case("ipc dynamic", M, "ipc_write_buffer: dynamic\n")
case("ipc number", N, "ipc_write_buffer: 1000\n")
case("encryption bad", N, "encryption_algorithm: ROT13\n")
case("signing bad", N, "signing_algorithm: ROT13\n")
case("publish signing bad", M, "publish_signing_algorithm: ROT13\n")
case("encryption", N, "encryption_algorithm: OAEP-SHA224\nsigning_algorithm: PKCS1v15-SHA224\n")
case("beacons", N, "beacons:\n  load: [{1m: [0, 2]}]\n")
case("return list", N, "return: [mysql, redis]\n")
case("ssh_minion_opts", M, "ssh_minion_opts:\n  gitfs_remotes: [x]\n  pillar_roots: {}\n  ssh_merge_pillar: false\n  fileserver_backend: []\n  test: true\n")
case("master forms", N, "master: [a, 'b:4507', '[::1]:4508']\nmaster_type: failover\n")
case("master text", N, "master: salt.example:4510\nmaster_uri_format: default\n")
case("schedule", M, "schedule:\n  j: {function: a.b, seconds: 60}\n")
case("output options", M, "state_output: terse\nstate_verbose: false\ncolor: false\noutput: json\n")
case("logging", N, "log_level: debug\nlog_granular_levels: {salt.minion: trace}\nlog_fmt_console: '%(message)s'\n")
case("ipv6", N, "ipv6: true\ninterface: '::'\n")
case("interface, client", "client", "interface: '::'\n")
case("interface own, client", "client", "interface: 10.0.0.1\nret_port: 4599\n")
case("saltrc", "client", "user: a\n", {"/home/op/.saltrc": "eauth: pam\ntimeout: 9\n"})
case("token file", "client", "token_file: /cases/tok\n", {"/cases/tok": "abc\n"})
case("syndic", "syndic", None, {E + "/master": "syndic_master: top\nuser: salt\nlog_level: info\n", E + "/minion": "id: synd\nmaster_port: 4607\n"})
case("syndic ports", "syndic", None, {E + "/master": "syndic_master: [a, b]\nsyndic_master_port: '5506'\nroot_dir: /r\n", E + "/minion": "id: synd\nroot_dir: /r\n"})
case("proxy", "proxy", "master: m\n", minion_id="p1")
case("proxy own files", "proxy", "master: m\n", {E + "/proxy.d/a.conf": "user: all\n", E + "/proxy.d/p1/b.conf": "user: one\n"}, minion_id="p1")

# --- environment -----------------------------------------------------------------------------------------
D = "/etc/salt"
case("SALT_MASTER_CONFIG", M, None, {ROOT + "/m": "user: env\n"}, {"SALT_MASTER_CONFIG": ROOT + "/m"}, config_dir=D)
case("SALT_MASTER_CONFIG missing", M, None, {}, {"SALT_MASTER_CONFIG": ROOT + "/nope"}, config_dir=D)
case("SALT_MASTER_CONFIG against -c", M, "user: c\n", {ROOT + "/m": "user: env\n"}, {"SALT_MASTER_CONFIG": ROOT + "/m"})
case("SALT_CONFIG_DIR", N, None, {ROOT + "/d/minion": "user: dir\n"}, {"SALT_CONFIG_DIR": ROOT + "/d"}, config_dir=D)
case("SALT_MINION_CONFIG wins", N, None, {ROOT + "/d/minion": "user: dir\n", ROOT + "/m": "user: env\n"}, {"SALT_CONFIG_DIR": ROOT + "/d", "SALT_MINION_CONFIG": ROOT + "/m"}, config_dir=D)
case("includes of an environment file", M, None, {ROOT + "/m": "include: x.conf\n", ROOT + "/x.conf": "user: x\n"}, {"SALT_MASTER_CONFIG": ROOT + "/m"}, config_dir=D)
case("SALT_CLIENT_CONFIG", "client", "user: a\n", {ROOT + "/rc": "timeout: 7\n"}, {"SALT_CLIENT_CONFIG": ROOT + "/rc"})


def plain(value):
    if isinstance(value, dict) or hasattr(value, "items"):
        # Keys that are no text are kept apart: JSON has only texts.
        return {k if isinstance(k, str) else f"<{k!r}>": plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ in ("ListProxy", "ImmutableList"):
        return [plain(v) for v in value]
    if isinstance(value, bool) or value is None or type(value) in (int, float, str):
        return value
    if isinstance(value, int):
        return int(value)
    return repr(value)


class Listener(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        if record.getMessage() not in self.messages:
            self.messages.append(record.getMessage())


def load(case):
    config_dir = case.get("config_dir", E)
    file = lambda name: f"{config_dir}/{name}"
    role = case["role"]
    if role == "master":
        return salt.config.master_config(file("master"))
    if role == "minion":
        return salt.config.minion_config(file("minion"), minion_id=case.get("minion_id"))
    if role == "client":
        return salt.config.client_config(file("master"))
    if role == "api":
        return salt.config.api_config(file("master"))
    if role == "syndic":
        return salt.config.syndic_config(file("master"), file("minion"))
    if role == "proxy":
        return salt.config.proxy_config(file("proxy"), minion_id=case.get("minion_id", "p1"))


def record(case):
    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(E)
    written = []
    for path, text in case["files"].items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", newline="") as fh:
            fh.write(text)
        written.append(path)
    before = dict(os.environ)
    os.environ.update(case["env"])
    host = case["host"]
    socket.getfqdn = lambda *a: host
    socket.gethostname = lambda: case.get("other_host", host)
    platform.node = lambda: case.get("other_host", host)
    listener = Listener()
    logger = logging.getLogger("salt.config")
    logger.addHandler(listener)
    logger.setLevel(logging.WARNING)
    error, opts = None, None
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            opts = plain(load(case))
    except SystemExit as exc:
        error = f"exit {exc.code}"
    except Exception as exc:
        error = str(exc)
    finally:
        logger.removeHandler(listener)
        os.environ.clear()
        os.environ.update(before)
        for path in written:
            if os.path.exists(path):
                os.remove(path)
        shutil.rmtree(ROOT, ignore_errors=True)
    return opts, listener.messages, error


def main():
    baselines, results = {}, []
    for case in CASES:
        opts, warnings, error = record(case)
        result = dict(case)
        if case.get("baseline"):
            baselines[case["role"]] = opts
            result["opts"] = opts
        elif opts is not None:
            base = baselines[case["role"]]
            result["opts"] = {k: v for k, v in opts.items() if k not in base or base[k] != v or type(base[k]) is not type(v)}
            result["gone"] = sorted(k for k in base if k not in opts)
        result["warnings"], result["error"] = warnings, error
        results.append(result)
    print("[")
    print(",\n".join(json.dumps(r, ensure_ascii=False) for r in results))
    print("]")


main()
