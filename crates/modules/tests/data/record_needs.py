#!/usr/bin/env python3
"""Records which programs genuine Salt's modules and states need to load, and what it says otherwise.

    unshare --mount python3 record_needs.py SALT_PYTHON OUT.json

Needs root and a mount namespace of its own: every program of PROGRAMS that the machine has is
covered by an empty file, and stand-ins are put on the PATH one by one.  `none` holds the reasons
with none of them, `with` what loads with only that set of programs, for Debian's grains.
"""
import json, os, shutil, subprocess, sys, tempfile

PROGRAMS = """a2dismod a2enconf a2enmod a2ensite apachectl apache2ctl at atq atrm batch brctl crontab
dig debconf-get-selections debconf-set-selections debconf-show firewall-cmd getfacl getsebool git gpg
htpasswd httpd httpd2 ip6tables ipset iptables lsblk lvm mdadm mke2fs mkfs mount nft npm partprobe parted
pip postconf psql quota quotaon rabbitmq-plugins rabbitmqctl restorecon rsync semanage semodule setfacl
setquota setsebool showmount systemctl timedatectl udevadm update-alternatives useradd virtualenv""".split()
SETS = [[one] for one in "apache2ctl at brctl crontab dig debconf-get-selections firewall-cmd getfacl git gpg htpasswd ipset iptables lvm mdadm nft npm psql rabbitmqctl rsync semanage setquota showmount udevadm parted apachectl httpd".split()] + [
    ["getfacl", "setfacl"], ["parted", "lsblk"], ["parted", "lsblk", "partprobe"], ["semanage", "setsebool"],
    ["semanage", "setsebool", "semodule"]]
SAYS = {"git": "git version 2.39.2", "npm": "9.2.0", "pip": "pip 23.0 from x (python 3.11)"}
GRAINS = {"kernel": "Linux", "os": "Debian", "os_family": "Debian", "osrelease": "12", "init": "systemd",
          "osmajorrelease": 12, "osrelease_info": [12], "id": "x", "oscodename": "bookworm",
          "kernelrelease": "6.1.0", "systemd": {"version": "252", "features": ""}, "osfullname": "Debian"}
LOAD = r'''
import json, logging, sys, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
import salt.config, salt.loader
opts = salt.config.minion_config(sys.argv[1]); opts["file_client"] = "local"
opts["grains"] = json.loads(sys.argv[2])
utils = salt.loader.utils(opts)
mods = salt.loader.minion_mods(opts, utils=utils); mods._load_all()
states = salt.loader.states(opts, mods, utils, salt.loader.serializers(opts)); states._load_all()
show = lambda loader: {"there": sorted({name.split(".")[0] for name in loader._dict}),
                       "missing": {k: v if v is None else str(v) for k, v in loader.missing_modules.items()}}
print("@@" + json.dumps({"modules": show(mods), "states": show(states)}))
'''
FOLDERS = "/usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin".split()

def main(python, out):
    work = tempfile.mkdtemp()
    for tool in ("mount",):
        shutil.copy(shutil.which(tool), work)
    nothing = work + "/nothing"
    open(nothing, "w").close(); os.chmod(nothing, 0o644)
    for program in PROGRAMS:
        for folder in FOLDERS:
            path = os.path.realpath(f"{folder}/{program}")
            if os.path.exists(path) and os.access(path, os.X_OK):
                subprocess.run([work + "/mount", "--bind", nothing, path], check=True)
    with open(work + "/minion", "w") as conf:
        conf.write(f"root_dir: {work}/r\nfile_client: local\nid: x\n")
    def load(programs):
        folder = work + "/bin"; shutil.rmtree(folder, ignore_errors=True); os.mkdir(folder)
        for program in programs:
            with open(f"{folder}/{program}", "w") as script:
                script.write(f"#!/bin/sh\necho '{SAYS.get(program, '')}'\n")
            os.chmod(f"{folder}/{program}", 0o755)
        env = dict(os.environ, PATH=folder + ":" + os.environ["PATH"])
        text = subprocess.run([python, "-c", LOAD, work + "/minion", json.dumps(GRAINS)], env=env,
                              capture_output=True, text=True).stdout
        return json.loads(text.split("@@")[1])
    none, every = load([]), load(PROGRAMS)
    # Only what these programs decide about.
    fresh = lambda got, kind: sorted(set(got[kind]["there"]) - set(none[kind]["there"]))
    names = {kind: fresh(every, kind) for kind in every}
    why = lambda got, kind: {name: got[kind]["missing"][name] for name in names[kind]
                             if name in got[kind]["missing"]}
    answer = {"none": {kind: why(none, kind) for kind in none}, "with": []}
    for programs in SETS:
        got = load(programs)
        answer["with"].append({"programs": programs, **{kind: fresh(got, kind) for kind in got},
            "missing": {kind: {name: reason for name, reason in why(got, kind).items()
                               if none[kind]["missing"].get(name) != reason} for kind in got}})
    json.dump(answer, open(out, "w"), indent=1, sort_keys=True)
    shutil.rmtree(work)

main(*sys.argv[1:])
