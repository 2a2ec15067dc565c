#!/usr/bin/env python3
"""Measures a master under a swarm of minions; prints JSON.

    swarm.py --halite PATH [--sizes 100,1000,10000] [--out FILE] [--scratch DIR] [--only NAMES]
    swarm.py --halite PATH --soak MINUTES --csv FILE [--sizes 1000]

Master and swarm share the machine. Every figure is taken through the public commands, and every count is
checked: a figure with a wrong count is reported as wrong, not as fast. Load stays on the loopback.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PER_PROCESS = 5000


def memory_mb(pid):
    """Proportional memory of a process, in MB."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M).group(1)) / 1024
    except (OSError, AttributeError):
        return None


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def free_ports():
    """Two ports nobody listens on."""
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Fleet:
    """A master, a swarm, and the commands that use them."""

    def __init__(self, halite, scratch, size):
        publish, ret = free_ports()
        self.halite, self.size, self.port = halite, size, ret
        self.root = tempfile.mkdtemp(prefix=f"swarm-{size}-", dir=scratch)
        self.etc = os.path.join(self.root, "etc")
        self.master = self.swarm = None
        self.report = {}
        for folder in ("etc", "srv/salt", "srv/pillar", "srv/reactor"):
            os.makedirs(os.path.join(self.root, folder))
        self.write("etc/master", f"""
root_dir: {self.root}/master
interface: 127.0.0.1
publish_port: {publish}
ret_port: {ret}
auto_accept: True
user: root
timeout: 60
file_roots: {{base: [{self.root}/srv/salt]}}
pillar_roots: {{base: [{self.root}/srv/pillar]}}
reactor:
  - bench/react: [{self.root}/srv/reactor/ping.sls]
""")
        self.write("etc/minion", f"""
master: 127.0.0.1
master_port: {ret}
recon_default: 200
recon_max: 5000
return_retry_timer: 2
""")
        self.write("srv/pillar/top.sls", "base:\n  'os:Debian':\n    - match: grain\n    - debian\n  '*':\n    - common\n")
        self.write("srv/pillar/common.sls", "common: 1\n")
        self.write("srv/pillar/debian.sls", "debian: 1\n")
        self.write("srv/reactor/ping.sls", "ping:\n  local.test.ping:\n    - tgt: '*'\n")

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w") as file:
            file.write(text)

    def start_master(self):
        log = open(os.path.join(self.root, "master.log"), "a")
        self.master = subprocess.Popen([self.halite, "master", "-c", self.etc, "-l", "warning"], stdout=log, stderr=log)

    def start_swarm(self, keys, more=()):
        processes = max(1, -(-self.size // PER_PROCESS))
        log = open(os.path.join(self.root, "swarm.log"), "a")
        self.swarm = subprocess.Popen(
            [self.halite, "swarm", "-n", str(self.size), "-c", self.etc, "--root", os.path.join(self.root, "swarm"),
             "--processes", str(processes), "--keys", str(keys), "--every", "0.1", *more],
            stdout=subprocess.PIPE, stderr=log, text=True)

        def read(lines):
            for line in lines:
                try:
                    self.report = json.loads(line)
                except ValueError:
                    pass
        threading.Thread(target=read, args=(self.swarm.stdout,), daemon=True).start()

    def run(self, *args, timeout=300):
        started = time.monotonic()
        ran = subprocess.run([self.halite, *args, "-c", self.etc], capture_output=True, text=True, timeout=timeout)
        return ran.stdout, time.monotonic() - started

    def ping(self, target="*"):
        out, seconds = self.run("salt", target, "test.ping", "--static", "--out", "json")
        try:
            answered = sum(1 for value in json.loads(out).values() if value is True)
        except ValueError:
            answered = 0
        return answered, seconds

    def one_id(self):
        out, _ = self.run("key", "-l", "acc", "--out", "json")
        return json.loads(out)["minions"][-1]

    def present(self):
        """How many the master holds a connection to, by its own word."""
        out, _ = self.run("run", "manage.present", "--out", "json")
        try:
            return len(json.loads(out))
        except ValueError:
            return 0

    def until_all(self, limit):
        """Waits until everybody answers; returns the seconds it took. Nobody is asked before all are there: a ping waits
        for those that are away, and that time would be counted."""
        started = time.monotonic()
        while time.monotonic() - started < limit:
            if self.report.get("connected") == self.size and self.present() == self.size:
                out, _ = self.run("salt", "*", "test.ping", "--static", "--out", "json", "-t", "10")
                try:
                    if sum(1 for value in json.loads(out).values() if value is True) == self.size:
                        return time.monotonic() - started
                except ValueError:
                    pass
            time.sleep(0.1)
        return None

    def stop(self):
        for process in (self.swarm, self.master):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
        shutil.rmtree(self.root, ignore_errors=True)


def timed(action, times):
    counts, seconds = [], []
    for _ in range(times):
        count, took = action()
        counts.append(count)
        seconds.append(took)
    return {"seconds": statistics.median(seconds), "all": [round(took, 4) for took in seconds], "counts": sorted(set(counts))}


def measure(halite, scratch, size, only):
    fleet = Fleet(halite, scratch, size)
    result = {"minions": size}
    wanted = lambda name: not only or name in only
    try:
        fleet.start_master()
        time.sleep(2)
        result["master_idle_mb"] = memory_mb(fleet.master.pid)
        started = time.monotonic()
        fleet.start_swarm(keys=16)
        all_there = fleet.until_all(600)
        result["all_signed_in_s"] = all_there and time.monotonic() - started
        if all_there is None:
            result["wrong"] = f"only {fleet.report} came"
            return result
        time.sleep(2)
        result["master_mb"] = memory_mb(fleet.master.pid)
        result["master_descriptors"] = descriptors(fleet.master.pid)
        result["ping"] = timed(fleet.ping, 7)

        def grain():
            out, seconds = fleet.run("salt", "-G", "os:Debian", "--preview-target", "--out", "json")
            return out.count("swarm-"), seconds

        one = fleet.one_id()

        def grain_of_one():
            out, seconds = fleet.run("salt", "-G", f"id:{one}", "--preview-target", "--out", "json")
            return out.count("swarm-"), seconds

        def nothing():
            return 0, fleet.run("--version")[1]

        def any_program():
            begun = time.monotonic()
            subprocess.run(["true"], capture_output=True, text=True)
            return 0, time.monotonic() - begun

        def keys():
            out, seconds = fleet.run("key", "-l", "acc", "--out", "json")
            return out.count("swarm-"), seconds

        if wanted("grain"):
            result["grain_match"] = timed(grain, 5)
            result["grain_match_one"] = timed(grain_of_one, 5)
            result["command"] = timed(nothing, 5)
            result["any_program"] = timed(any_program, 5)
        if wanted("keys"):
            result["key_list"] = timed(keys, 5)
        if wanted("history"):
            jobs, _ = fleet.run("run", "jobs.list_jobs", "search_function=test.ping", "--out", "json")
            jid = max(json.loads(jobs))

            def lookup():
                out, seconds = fleet.run("run", "jobs.lookup_jid", jid, "--out", "json")
                return out.count("swarm-"), seconds

            def history():
                out, seconds = fleet.run("run", "jobs.list_jobs", "--out", "json")
                return len(json.loads(out)), seconds

            def present():
                out, seconds = fleet.run("run", "manage.present", "--out", "json")
                return out.count("swarm-"), seconds

            result["job_lookup"] = timed(lookup, 5)
            result["job_list"] = timed(history, 5)
            result["presence"] = timed(present, 5)
        if wanted("pillar"):
            fleet.run("salt", "*", "saltutil.refresh_pillar", "wait=True", "--static", "--out", "json")
            fleet.write("srv/pillar/debian.sls", "debian: 2\n")

            def pillar():
                _, seconds = fleet.run("salt", "*", "saltutil.refresh_pillar", "wait=True", "--static", "--out", "json")
                out, _ = fleet.run("salt", "-I", "debian:2", "test.ping", "--static", "--out", "json")
                return sum(1 for value in json.loads(out).values() if value is True), seconds
            result["pillar_edit"] = timed(pillar, 1)
        if wanted("event"):
            def event():
                before = fleet.report.get("jobs", 0)
                started = time.monotonic()
                fleet.run("run", "event.send", "bench/react")
                while fleet.report.get("jobs", 0) - before < size or fleet.report.get("waiting", 1):
                    if time.monotonic() - started > 60:
                        break
                    time.sleep(0.02)
                return min(size, fleet.report.get("jobs", 0) - before), time.monotonic() - started
            result["event_to_all"] = timed(event, 3)
        if wanted("returns"):
            result["returns"] = returns(fleet)
        if wanted("rotation"):
            # Deleting a key makes a new session key: everybody has to fetch it.
            started = time.monotonic()
            fleet.run("key", "-y", "-d", fleet.one_id())
            back = fleet.until_all(300)
            result["rotation_all_back_s"] = back and time.monotonic() - started
        if wanted("blip"):
            # The kernel ends all connections at once, as a router that forgot them does.
            started = time.monotonic()
            cut = subprocess.run(["ss", "-K", "dport", "=", f":{fleet.port}"], capture_output=True, text=True)
            result["blip_cut"] = cut.stdout.count("ESTAB")
            back = fleet.until_all(300)
            result["blip_all_back_s"] = back and time.monotonic() - started
        if wanted("restart"):
            fleet.master.kill()
            fleet.master.wait()
            started = time.monotonic()
            fleet.start_master()
            back = fleet.until_all(300)
            result["restart_all_back_s"] = back and time.monotonic() - started
        result["swarm"] = fleet.report
        result["master_after_mb"] = memory_mb(fleet.master.pid)
    finally:
        fleet.stop()
    return result


def returns(fleet, jobs=5):
    """Several jobs for everybody at once. A minion has nothing waiting once the master has said that the return is
    stored, which it says after the commit: this is the rate of durable returns."""
    before, started = fleet.report.get("jobs", 0), time.monotonic()
    wanted = jobs * fleet.size
    for _ in range(jobs):
        fleet.run("salt", "*", "test.ping", "--async")
    while fleet.report.get("jobs", 0) - before < wanted or fleet.report.get("waiting", 1):
        if time.monotonic() - started > 120:
            break
        time.sleep(0.02)
    seconds, done = time.monotonic() - started, fleet.report.get("jobs", 0) - before
    return {"count": done, "wanted": wanted, "seconds": seconds, "per_second": done / seconds}


def one_minion(halite, scratch):
    """A real minion daemon that has nothing to do: memory, and how often it wakes up."""
    fleet = Fleet(halite, scratch, 1)
    fleet.write("etc/minion", open(os.path.join(fleet.etc, "minion")).read()
                + f"id: real\nroot_dir: {fleet.root}/minion\nuser: root\n")
    log = open(os.path.join(fleet.root, "minion.log"), "a")
    minion = None
    try:
        fleet.start_master()
        time.sleep(1)
        minion = subprocess.Popen([halite, "minion", "-c", fleet.etc, "-l", "warning"], stdout=log, stderr=log)
        started = time.monotonic()
        while fleet.ping()[0] != 1 and time.monotonic() - started < 60:
            time.sleep(0.2)
        time.sleep(5)
        wakes, since = switches(minion.pid), time.monotonic()
        time.sleep(30)
        wakes, seconds = switches(minion.pid) - wakes, time.monotonic() - since
        return {"pss_mb": memory_mb(minion.pid), "rss_mb": resident_mb(minion.pid), "wakes_per_s": wakes / seconds}
    finally:
        if minion:
            minion.kill()
            minion.wait()
        fleet.stop()


def resident_mb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^VmRSS:\s+(\d+)", file.read(), re.M).group(1)) / 1024


def switches(pid):
    """Voluntary context switches of all threads: how often something woke up."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as file:
            total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M).group(1))
    return total


def soak(halite, scratch, size, minutes, path):
    """Mixed load for minutes: jobs to all and to some, events, pillar, keys that go, minions that come and go. A second of
    rest in every round: a fleet is not a flood."""
    fleet = Fleet(halite, scratch, size)
    churn = max(1, size // 100)
    try:
        fleet.start_master()
        time.sleep(1)
        fleet.start_swarm(keys=16, more=("--flapping", str(churn), "--period", "20"))
        limit = time.monotonic() + 600
        while fleet.report.get("connected", 0) < size - churn:
            if time.monotonic() > limit:
                return {"wrong": f"only {fleet.report} came"}
            time.sleep(0.2)
        end = time.monotonic() + minutes * 60
        begun, rounds, wrong = time.monotonic(), 0, 0
        with open(path, "w") as file:
            file.write("seconds,master_mb,master_descriptors,ping_s,answered\n")
            while time.monotonic() < end:
                rounds += 1
                answered, seconds = fleet.ping()
                # Those that are just away do not answer; nobody else is missing.
                wrong += answered < size - churn
                for _ in range(20):
                    fleet.run("run", "event.send", f"soak/{rounds}")
                fleet.run("salt", "-G", "os:Debian", "grains.items", "--static", "--out", "json")
                if rounds % 10 == 0:
                    fleet.write("srv/pillar/common.sls", f"common: {rounds}\n")
                    fleet.run("salt", "*", "saltutil.refresh_pillar", "--async")
                if rounds % 25 == 0:
                    fleet.run("key", "-y", "-d", fleet.one_id())
                time.sleep(1)
                file.write(f"{time.monotonic() - begun:.1f},{memory_mb(fleet.master.pid):.2f},"
                           f"{descriptors(fleet.master.pid)},{seconds:.4f},{answered}\n")
                file.flush()
        return {"minions": size, "minutes": minutes, "rounds": rounds, "rounds_with_wrong_count": wrong}
    finally:
        fleet.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--halite", required=True)
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--out")
    parser.add_argument("--scratch", default=tempfile.gettempdir())
    parser.add_argument("--only", default="")
    parser.add_argument("--soak", type=float, default=0)
    parser.add_argument("--csv", default="soak.csv")
    args = parser.parse_args()
    if args.soak:
        size = int(args.sizes.split(",")[0]) if args.sizes != parser.get_default("sizes") else 1000
        print(json.dumps(soak(os.path.abspath(args.halite), args.scratch, size, args.soak, args.csv)))
        return
    only = [name for name in args.only.split(",") if name]
    results = {"machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "kernel": os.uname().release}, "sizes": []}
    for size in (int(size) for size in args.sizes.split(",")):
        result = measure(os.path.abspath(args.halite), args.scratch, size, only)
        print(json.dumps(result), file=sys.stderr, flush=True)
        results["sizes"].append(result)
    if not only or "minion" in only:
        results["real_minion"] = one_minion(os.path.abspath(args.halite), args.scratch)
    text = json.dumps(results, indent=1)
    print(text)
    if args.out:
        with open(args.out, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
