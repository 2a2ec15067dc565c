"""Configuration files, with Salt's defaults for what clients need."""

import glob
import os

DEFAULT_MASTER_OPTS = {
    "interface": "0.0.0.0",
    "publish_port": 4505,
    "ret_port": 4506,
    "user": "root",
    "root_dir": "/",
    "conf_file": "/etc/salt/master",
    "pki_dir": "/etc/salt/pki/master",
    "cachedir": "/var/cache/salt/master",
    "sock_dir": "/var/run/salt/master",
    "extension_modules": "/var/cache/salt/master/extmods",
    "log_file": "/var/log/salt/master",
    "log_level": "warning",
    "keep_jobs_seconds": 86400,
    "timeout": 5,
    "gather_job_timeout": 10,
    "transport": "zeromq",
    "file_roots": {"base": ["/srv/salt"]},
    "pillar_roots": {"base": ["/srv/pillar"]},
    "fileserver_backend": ["roots"],
    "file_client": "local",
    "renderer": "jinja|yaml",
    "failhard": False,
    "job_cache": True,
    "ext_job_cache": "",
    "master_job_cache": "local_cache",
    "nodegroups": {},
    "external_auth": {},
    "token_file": os.path.expanduser("~/.salt/token"),
    "eauth": "",
    "open_mode": False,
    "auto_accept": False,
    "syndic_master": "",
    "order_masters": False,
    "hash_type": "sha256",
    "ipc_mode": "ipc",
    "default_include": "master.d/*.conf",
}
DEFAULT_MINION_OPTS = {
    "master": "salt",
    "master_port": 4506,
    "publish_port": 4505,
    "user": "root",
    "root_dir": "/",
    "conf_file": "/etc/salt/minion",
    "pki_dir": "/etc/salt/pki/minion",
    "cachedir": "/var/cache/salt/minion",
    "sock_dir": "/var/run/salt/minion",
    "extension_modules": "/var/cache/salt/minion/extmods",
    "log_file": "/var/log/salt/minion",
    "log_level": "warning",
    "transport": "zeromq",
    "file_client": "remote",
    "file_roots": {"base": ["/srv/salt"]},
    "pillar_roots": {"base": ["/srv/pillar"]},
    "renderer": "jinja|yaml",
    "failhard": False,
    "test": False,
    "saltenv": None,
    "pillarenv": None,
    "grains": {},
    "id": "",
    "hash_type": "sha256",
    "ipc_mode": "ipc",
    "default_include": "minion.d/*.conf",
}
_PATHS = ("pki_dir", "cachedir", "sock_dir", "extension_modules", "log_file")


def _read_conf_file(path):
    import salt.utils.yaml

    try:
        with open(path, encoding="utf-8") as handle:
            found = salt.utils.yaml.safe_load(handle.read())
    except OSError:
        return {}
    return found if isinstance(found, dict) else {}


def load_config(path, env_var=None, default_path=None, exit_on_config_errors=True):
    path = os.environ.get(env_var or "", path) or default_path or path
    return _read_conf_file(path)


def include_config(include, orig_path, verbose=False, exit_on_config_errors=False):
    patterns = [include] if isinstance(include, str) else include or []
    found = {}
    for pattern in patterns:
        if not os.path.isabs(pattern):
            pattern = os.path.join(os.path.dirname(orig_path), pattern)
        for path in sorted(glob.glob(pattern)):
            found.update(_read_conf_file(path))
    return found


def _load(path, defaults, env_var):
    path = os.environ.get(env_var, path) if path == defaults["conf_file"] else path
    if os.path.isdir(path):
        path = os.path.join(path, os.path.basename(defaults["conf_file"]))
    own = _read_conf_file(path)
    merged = dict(own)
    merged.update(include_config(own.get("default_include", defaults["default_include"]), path))
    merged.update(include_config(own.get("include"), path))
    opts = dict(defaults)
    opts.update(merged)
    opts["conf_file"] = path
    opts["config_dir"] = os.path.dirname(os.path.abspath(path))
    root = opts.get("root_dir") or "/"
    if root != "/":
        for name in _PATHS:
            value = opts.get(name)
            if isinstance(value, str) and "://" not in value and not value.startswith(root.rstrip("/") + "/"):
                opts[name] = os.path.join(root, value.lstrip("/"))
        cache = opts["cachedir"]
        if "extension_modules" not in merged:
            opts["extension_modules"] = os.path.join(cache, "extmods")
    opts["__role"] = "minion" if "master_port" in defaults else "master"
    return opts


def master_config(path, env_var="SALT_MASTER_CONFIG", defaults=None, exit_on_config_errors=False):
    return _load(path or DEFAULT_MASTER_OPTS["conf_file"], dict(defaults or DEFAULT_MASTER_OPTS), env_var)


def client_config(path, env_var="SALT_CLIENT_CONFIG", defaults=None):
    """The master's configuration, with `~/.saltrc` over it."""
    opts = _load(path or DEFAULT_MASTER_OPTS["conf_file"], dict(defaults or DEFAULT_MASTER_OPTS), "SALT_MASTER_CONFIG")
    opts.update(_read_conf_file(os.environ.get(env_var, os.path.expanduser("~/.saltrc"))))
    return opts


def minion_config(path, env_var="SALT_MINION_CONFIG", defaults=None, cache_minion_id=False,
                  ignore_config_errors=True, minion_id=None, role="minion"):
    from salt import _host

    own = _host.opts()
    if own is not None and (not path or path == own.get("conf_file")):
        return dict(own)
    opts = _load(path or DEFAULT_MINION_OPTS["conf_file"], dict(defaults or DEFAULT_MINION_OPTS), env_var)
    if minion_id:
        opts["id"] = minion_id
    if not opts.get("id"):
        opts["id"] = get_id(opts)[0]
    return opts


def get_id(opts, cache_minion_id=False):
    import socket

    try:
        with open(os.path.join(os.path.dirname(opts["conf_file"]), "minion_id"), encoding="utf-8") as handle:
            return handle.read().strip(), False
    except OSError:
        return socket.getfqdn(), False


def apply_minion_config(overrides=None, defaults=None, **kwargs):
    return dict(defaults or DEFAULT_MINION_OPTS, **(overrides or {}))


def apply_master_config(overrides=None, defaults=None):
    return dict(defaults or DEFAULT_MASTER_OPTS, **(overrides or {}))


def call_id_function(opts):
    return opts.get("id")
