#!/usr/bin/env python3
"""Events and reactions of a Salt-compatible master, measured from outside.

Give it a folder that holds `salt-master` and `salt-minion`. It starts one master
and one minion on the loopback and measures, over the master's local event
sockets (the same for both makes):

- latency: from an event until the job it leads to is on the bus, and until the
  minion has returned it (p50, p95, p99 of single events);
- fan-out: events per second that reach five subscribers, and how many each got;
- slow reader: how late events reach a subscriber (p50, p95, p99), alone and
  beside one that reads a byte per second;
- reactions: runner reactions per second in a burst, and how many came of it;
- raw: all of these again, with programs that take next to no time: who fires writes frames made
  beforehand, who listens counts tags in what it reads. The slow reader comes and goes in turns.

It must run with a Python that has genuine Salt installed: the listener is Salt's
own `salt.utils.event`, as people's scripts use it. Prints one JSON document.

    events.py --bin DIR --name NAME --scratch DIR [--single N] [--fanout N] [--late N] [--burst N] [--raw N] [--rounds N]
"""
import argparse
import json
import logging
import multiprocessing
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

logging.disable(logging.CRITICAL)


def free_ports():
    found = []
    for _ in range(2):
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
        found.append(s)
    ports = [s.getsockname()[1] for s in found]
    for s in found:
        s.close()
    return ports


def pct(values, p):
    v = sorted(values)
    if not v:
        return None
    k = (len(v) - 1) * p / 100.0
    lo = int(k)
    hi = min(lo + 1, len(v) - 1)
    return round(v[lo] + (v[hi] - v[lo]) * (k - lo), 6)


def spread(values):
    return {"n": len(values), "p50": pct(values, 50), "p95": pct(values, 95), "p99": pct(values, 99)}


class Fleet:
    def __init__(self, bin_dir, scratch):
        self.bin, self.scratch = bin_dir, scratch
        shutil.rmtree(scratch, ignore_errors=True)
        publish, ret = free_ports()
        for folder in ("etc/m", "reactor"):
            os.makedirs(os.path.join(scratch, folder))
        self.write("etc/master", f"""
root_dir: {scratch}/root
id: bench_master
interface: 127.0.0.1
publish_port: {publish}
ret_port: {ret}
auto_accept: True
user: root
reactor:
  - 'bench/one/*': [{scratch}/reactor/one.sls]
  - 'bench/many/*': [{scratch}/reactor/many.sls]
""")
        self.write("etc/m/minion", f"""
root_dir: {scratch}/minion
id: m1
master: 127.0.0.1
publish_port: {publish}
master_port: {ret}
user: root
""")
        self.write("reactor/one.sls", """
ping:
  local.test.echo:
    - tgt: m1
    - arg: ["{{ data['n'] }}"]
""")
        self.write("reactor/many.sls", """
count:
  runner.test.arg:
    - args:
      - n: {{ data['n'] }}
""")
        self.processes = []
        self.start("salt-master", "etc")
        sock = os.path.join(scratch, "root/var/run/salt/master/master_event_pub.ipc")
        self.wait(lambda: os.path.exists(sock), "the master")
        self.opts = self.options()
        # Before the minion: its start must not be missed.
        self.listening = self.bus()
        self.listening.get_event(wait=0.5)
        self.start("salt-minion", "etc/m")

    def write(self, path, text):
        with open(os.path.join(self.scratch, path), "w", encoding="utf-8") as f:
            f.write(text.lstrip())

    def start(self, program, config):
        log = open(os.path.join(self.scratch, program + ".log"), "wb")
        self.processes.append(subprocess.Popen(
            [os.path.join(self.bin, program), "-c", os.path.join(self.scratch, config)],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True))

    def wait(self, is_so, what, seconds=120):
        end = time.time() + seconds
        while not is_so():
            if time.time() > end:
                raise RuntimeError(f"not in time: {what}")
            time.sleep(0.1)

    def options(self):
        import salt.config
        return salt.config.client_config(os.path.join(self.scratch, "etc/master"))

    def bus(self, listen=True):
        import salt.utils.event
        return salt.utils.event.get_event(
            "master", sock_dir=self.opts["sock_dir"], opts=self.opts, listen=listen)

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def next_event(bus, seconds):
    return bus.get_event(wait=seconds, full=True, no_block=False)


def latency(fleet, count):
    bus = fleet.listening
    fleet_up = time.time() + 120
    while time.time() < fleet_up:
        event = next_event(bus, 5)
        if event and event["tag"] == "salt/minion/m1/start":
            break
    begun, done, lost = [], [], 0
    for n in range(count + 5):
        word = f"{n}"
        start = time.perf_counter()
        bus.fire_event({"n": n}, f"bench/one/{n}")
        at_job = at_return = None
        end = time.perf_counter() + 20
        while time.perf_counter() < end and at_return is None:
            event = next_event(bus, 1)
            if not event:
                continue
            data = event["data"]
            if event["tag"].endswith("/new") and word in [str(a) for a in data.get("arg", [])]:
                at_job = time.perf_counter()
            elif "/ret/m1" in event["tag"] and str(data.get("return")) == word:
                at_return = time.perf_counter()
        # The first few warm both sides up.
        if n < 5:
            continue
        if at_job is None or at_return is None:
            lost += 1
            continue
        begun.append(at_job - start)
        done.append(at_return - start)
        time.sleep(0.02)
    return {"seconds_to_job": spread(begun), "seconds_to_return": spread(done), "lost": lost}


def count_events(fleet, total, ready, seen, last):
    bus = fleet.bus()
    bus.get_event(wait=0.2)
    ready.release()
    end = time.time() + 120
    while seen.value < total and time.time() < end:
        event = bus.get_event(wait=2, full=True)
        if event is None:
            if seen.value and time.time() - last.value > 8:
                break
            continue
        if event["tag"].startswith("bench/none/"):
            seen.value += 1
            last.value = time.time()


def fan_out(fleet, total):
    ready = multiprocessing.Semaphore(0)
    readers = []
    for _ in range(5):
        seen = multiprocessing.Value("q", 0, lock=False)
        last = multiprocessing.Value("d", 0.0, lock=False)
        process = multiprocessing.Process(target=count_events, args=(fleet, total, ready, seen, last))
        process.start()
        readers.append((process, seen, last))
    for _ in readers:
        ready.acquire()
    bus = fleet.bus(listen=False)
    start = time.time()
    for n in range(total):
        bus.fire_event({"n": n}, f"bench/none/{n}")
    fired = time.time() - start
    for process, _, _ in readers:
        process.join()
    took = max(max(last.value for _, _, last in readers) - start, 1e-9)
    got = [seen.value for _, seen, _ in readers]
    return {"events": total, "got": got, "seconds_to_fire": round(fired, 3),
            "delivered_per_second": round(sum(got) / took), "events_per_second": round(min(got) / took)}


def late(fleet, total):
    """How late events are at a subscriber, at a steady thousand per second."""
    bus = fleet.bus()
    bus.get_event(wait=0.2)
    firing = multiprocessing.Process(target=fire_steadily, args=(fleet, total))
    firing.start()
    found, last = [], time.time()
    while len(found) < total and time.time() - last < 10:
        event = bus.get_event(wait=2, full=True)
        if event and event["tag"].startswith("bench/late/"):
            last = time.time()
            found.append(last - event["data"]["at"])
    firing.join()
    return dict(spread(found), lost=total - len(found))


def fire_steadily(fleet, total):
    bus = fleet.bus(listen=False)
    begin = time.perf_counter()
    for n in range(total):
        time.sleep(max(0.0, begin + n / 1000 - time.perf_counter()))
        bus.fire_event({"at": time.time(), "more": "x" * 1000}, f"bench/late/{n}")


def drip(path, stop):
    """Subscribes, and reads one byte per second."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        while not stop.wait(1):
            s.recv(1)


def slow_reader(fleet, total):
    alone = late(fleet, total)
    stop = multiprocessing.Event()
    path = os.path.join(fleet.opts["sock_dir"], "master_event_pub.ipc")
    slow = multiprocessing.Process(target=drip, args=(path, stop))
    slow.start()
    time.sleep(1)
    beside = late(fleet, total)
    stop.set()
    slow.join()
    return {"alone": alone, "beside_a_slow_one": beside}


def burst(fleet, total):
    bus = fleet.bus()
    bus.get_event(wait=0.2)
    start = time.time()
    fired = multiprocessing.Process(target=fire_many, args=(fleet, total))
    fired.start()
    done, last = 0, start
    while done < total and time.time() - last < 15:
        event = bus.get_event(wait=2, full=True)
        if event and event["tag"].startswith("salt/run/") and event["tag"].endswith("/ret"):
            done += 1
            last = time.time()
    fired.join()
    return {"events": total, "reactions_seen": done, "per_second": round(done / max(last - start, 1e-9))}


def fire_many(fleet, total):
    bus = fleet.bus(listen=False)
    for n in range(total):
        bus.fire_event({"n": n}, f"bench/many/{n}")


def frames(tag, total, more=""):
    """What a program of Salt 3008 writes to fire events: a length, then `{"head": {}, "body": event}`."""
    import salt.utils.msgpack as msgpack

    stamp = "2026-01-01T00:00:00.000000+00:00"
    for n in range(total):
        data = {"n": n, "more": more, "_stamp": stamp}
        body = f"{tag}{n}\n\n".encode() + msgpack.packb(data, use_bin_type=True)
        element = msgpack.packb({"head": {}, "body": body}, use_bin_type=True)
        yield len(element).to_bytes(4, "big") + element


def raw_fire(fleet, data):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.path.join(fleet.opts["sock_dir"], "master_event_pull.ipc"))
        s.sendall(data)


def raw_count(fleet, pattern, total, ready, seen, last):
    """Counts tags in the stream of a subscriber; the end of one piece goes before the next."""
    find = re.compile(pattern)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.path.join(fleet.opts["sock_dir"], "master_event_pub.ipc"))
        s.settimeout(8)
        time.sleep(0.3)
        ready.release()
        rest = b""
        while seen.value < total:
            try:
                piece = s.recv(1 << 20)
            except TimeoutError:
                break
            if not piece:
                break
            rest += piece
            end = 0
            for found in find.finditer(rest):
                seen.value += 1
                end = found.end()
                last.value = time.time()
            rest = rest[max(end, len(rest) - 64):]


def raw_latency(fleet, count):
    """As `latency`: from writing an event until the tags of its job and of the return are read."""
    job, done = re.compile(rb"salt/job/\d+/new\n\n"), re.compile(rb"salt/job/\d+/ret/m1\n\n")
    sock_dir = fleet.opts["sock_dir"]
    begun, ended, lost = [], [], 0
    with socket.socket(socket.AF_UNIX) as heard, socket.socket(socket.AF_UNIX) as fire:
        heard.connect(os.path.join(sock_dir, "master_event_pub.ipc"))
        heard.settimeout(20)
        fire.connect(os.path.join(sock_dir, "master_event_pull.ipc"))
        time.sleep(0.3)
        for n, frame in enumerate(frames("bench/one/", count + 5)):
            start = time.perf_counter()
            fire.sendall(frame)
            seen, at_job = b"", None
            try:
                while not done.search(seen):
                    seen += heard.recv(1 << 16)
                    if at_job is None and job.search(seen):
                        at_job = time.perf_counter()
            except TimeoutError:
                lost += 1
                continue
            at_return = time.perf_counter()
            if n >= 5 and at_job is not None:
                begun.append(at_job - start)
                ended.append(at_return - start)
            time.sleep(0.02)
    return {"seconds_to_job": spread(begun), "seconds_to_return": spread(ended), "lost": lost}


def raw_late(heard, fire, round_, total):
    """How late each of some events of a kilobyte is, one after the other."""
    found = []
    for n, frame in enumerate(frames(f"bench/late/{round_}/", total, "x" * 1000)):
        tag = f"bench/late/{round_}/{n}\n\n".encode()
        start = time.perf_counter()
        fire.sendall(frame)
        seen = b""
        while tag not in seen:
            seen += heard.recv(1 << 16)
        found.append(time.perf_counter() - start)
    return found


def raw_slow_reader(fleet, rounds, total):
    """p99 at one subscriber, with and without another that reads a byte a second, in turns: what changes
    from round to round on any machine is told apart from what the slow one changes."""
    sock_dir = fleet.opts["sock_dir"]
    path = os.path.join(sock_dir, "master_event_pub.ipc")
    found = {"alone": [], "beside_a_slow_one": []}
    ratios = []
    with socket.socket(socket.AF_UNIX) as heard, socket.socket(socket.AF_UNIX) as fire:
        heard.connect(path)
        heard.settimeout(20)
        fire.connect(os.path.join(sock_dir, "master_event_pull.ipc"))
        time.sleep(0.3)
        raw_late(heard, fire, "warm", total)
        for number in range(rounds):
            pair = {}
            # Who goes first changes, too.
            for how in sorted(found, reverse=number % 2 == 1):
                stop = multiprocessing.Event()
                slow = multiprocessing.Process(target=drip, args=(path, stop))
                if how != "alone":
                    slow.start()
                    time.sleep(0.3)
                # What the slow one's socket takes in is full afterwards.
                raw_late(heard, fire, f"fill-{how}-{number}", 500)
                pair[how] = pct(raw_late(heard, fire, f"{how}-{number}", total), 99)
                if how != "alone":
                    stop.set()
                    slow.join()
            for how, p99 in pair.items():
                found[how].append(p99)
            ratios.append(pair["beside_a_slow_one"] / pair["alone"])
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    return {"rounds": rounds, "events_each": total,
            "p99": {how: round(statistics.median(each), 6) for how, each in found.items()},
            "ratio_of_p99": {"median": round(statistics.median(ratios), 3), "mean": round(statistics.mean(ratios), 3),
                             "standard_error": round(error, 3)}}


def raw(fleet, tag, pattern, total, subscribers):
    ready = multiprocessing.Semaphore(0)
    readers = []
    for _ in range(subscribers):
        seen = multiprocessing.Value("q", 0, lock=False)
        last = multiprocessing.Value("d", 0.0, lock=False)
        process = multiprocessing.Process(target=raw_count, args=(fleet, pattern, total, ready, seen, last))
        process.start()
        readers.append((process, seen, last))
    for _ in readers:
        ready.acquire()
    data = b"".join(frames(tag, total))
    start = time.time()
    raw_fire(fleet, data)
    for process, _, _ in readers:
        process.join()
    took = max(max(last.value for _, _, last in readers) - start, 1e-9)
    got = [seen.value for _, seen, _ in readers]
    return {"events": total, "got": got, "delivered_per_second": round(sum(got) / took),
            "per_second": round(min(got) / took)}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--bin", required=True)
    p.add_argument("--name", required=True)
    p.add_argument("--scratch", required=True, help="emptied first; keep it short (unix socket paths)")
    p.add_argument("--single", type=int, default=100)
    p.add_argument("--fanout", type=int, default=20000)
    p.add_argument("--late", type=int, default=5000)
    p.add_argument("--burst", type=int, default=2000)
    p.add_argument("--raw", type=int, default=50000)
    p.add_argument("--rounds", type=int, default=20)
    args = p.parse_args()
    fleet = Fleet(args.bin, args.scratch)
    result = {"name": args.name}
    try:
        result["latency"] = latency(fleet, args.single)
        result["fan_out"] = fan_out(fleet, args.fanout)
        result["slow_reader"] = slow_reader(fleet, args.late)
        result["reactions"] = burst(fleet, args.burst)
        result["raw_latency"] = raw_latency(fleet, args.single)
        result["raw_slow_reader"] = raw_slow_reader(fleet, args.rounds, 1000)
        result["raw_fan_out"] = raw(fleet, "bench/none/", rb"bench/none/", args.raw, 5)
        result["raw_reactions"] = raw(fleet, "bench/many/", rb"salt/run/\d+/ret\n\n", args.burst, 1)
    finally:
        fleet.end()
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
