#!/usr/bin/env python3
"""Writes `bench/report.md` and its charts from the JSON results in `bench/results`.

    report.py [FOLDER]

A result that compares makes has `halite` and `salt` somewhere in the path of every figure; whatever stands above and
below becomes the name of the row. `swarm.json` has one column per number of minions. Nothing is computed here but
ratios and the slope of the soak: what a figure means is said by the benchmark that made it (`bench/README.md`).
"""
import csv
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
MAKES = ("halite", "salt")
TITLES = {
    "render": "Rendering",
    "startup": "Start",
    "local": "Masterless runs",
    "fleet": "Master and real minions",
    "bridge": "Users' Python",
    "events": "Events and reactions",
}
# What the swarm is asked for: figure, its title, unit, and the goal by the number of minions.
SWARM = [
    ("ping.seconds", "`salt '*' test.ping`, all returns stored and printed", "s", {1000: 0.3, 10000: 1.0}),
    ("event_to_all.seconds", "event → reactor → job on all → all returned", "s", {10000: 1.5}),
    ("master_idle_mb", "master without minions", "MB", {10000: 20}),
    ("master_mb", "master with all connected", "MB", {10000: 200}),
    ("grain_match.seconds", "match by grain, a fifth of all (whole command, names printed)", "s", {10000: 0.005}),
    ("grain_match_one.seconds", "match by grain, one of all (whole command)", "s", {10000: 0.005}),
    ("command.seconds", "a command that does nothing, for comparison", "s", {}),
    ("any_program.seconds", "`true` started in the same way, for comparison", "s", {}),
    ("key_list.seconds", "list of keys (whole command)", "s", {10000: 0.010}),
    ("job_lookup.seconds", "a job looked up, all its returns printed (whole command)", "s", {}),
    ("job_list.seconds", "list of jobs (whole command)", "s", {}),
    ("presence.seconds", "who is connected (whole command)", "s", {}),
    ("returns.per_second", "returns stored durably, per second", "", {10000: -20000}),
    ("restart_all_back_s", "all back after `kill -9` of the master", "s", {10000: 15}),
    ("rotation_all_back_s", "all back after a change of the session key", "s", {}),
    ("blip_all_back_s", "all back after their connections were cut", "s", {}),
    ("pillar_edit.seconds", "pillar for all after a one-line edit", "s", {10000: 5}),
    ("all_signed_in_s", "all started at once, keys accepted, signed in", "s", {}),
]


def leaves(value, path=()):
    """Yields the numbers of a JSON value with their paths."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, path + (str(key),))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def comparison(result):
    rows = {}
    for path, number in leaves(result):
        make = next((part for part in path if part in MAKES), None)
        # `halite_ms` beside `salt_ms` is the same thing in one word.
        name = " ".join(part for part in path if part not in MAKES)
        if make is None and path[-1].split("_")[0] in MAKES:
            make, _, rest = path[-1].partition("_")
            name = " ".join(path[:-1] + (rest,))
        if path[-1] == "goal":
            make, name = "goal", " ".join(path[:-1])
        if make:
            rows.setdefault(name, {})[make] = number
    return {name: row for name, row in rows.items() if "halite" in row}


def shown(number):
    if number is None:
        return ""
    if isinstance(number, int) or abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def compared(result):
    rows = comparison(result)
    goals = any("goal" in row for row in rows.values())
    lines = ["| | Halite | Salt 3008.3 | Salt / Halite |" + " times better, goal |" * goals,
             "|---|---:|---:|---:|" + "---:|" * goals]
    for name, row in rows.items():
        ours, theirs = row["halite"], row.get("salt")
        ratio = f"{theirs / ours:.1f}" if theirs is not None and ours else ""
        goal = f" {shown(row.get('goal'))} |" * goals
        lines.append(f"| {name} | {shown(ours)} | {shown(theirs)} | {ratio} |{goal}")
    return lines


def growth_of_graphs(result):
    each = at(result, "graph.instructions_for_each_state")
    if not each:
        return []
    told = ", ".join(f"{shown(int(count))} with {int(states):,} states" for states, count in each.items())
    return [f"Instructions for each state with five requisites (linear, if they are as many in every graph): {told}.", ""]


def at(value, path):
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def swarm(result):
    sizes = result["sizes"]
    lines = ["| | " + " | ".join(f"{size['minions']:,} minions" for size in sizes) + " | goal |",
             "|---|" + "---:|" * len(sizes) + "---|"]
    for path, title, unit, goals in SWARM:
        cells = []
        for size in sizes:
            figure, goal = at(size, path), goals.get(size["minions"])
            mark = ""
            if figure is not None and goal is not None:
                met = figure <= goal if goal > 0 else figure >= -goal
                mark = " ✓" if met else " ✗"
            cells.append(f"{shown(figure)}{mark}")
        goal = ", ".join(f"{shown(abs(goal))} {unit} with {size:,}".strip() for size, goal in goals.items())
        lines.append(f"| {title}{f', {unit}' if unit else ''} | " + " | ".join(cells) + f" | {goal} |")
    wrong = [f"{size['minions']}: {size['wrong']}" for size in sizes if "wrong" in size]
    lines += ["", "Wrong counts: " + ("; ".join(wrong) if wrong else "none.")]
    real = result.get("real_minion")
    if real:
        lines += ["", f"A real minion with nothing to do: {real['rss_mb']:.1f} MB resident ({real['pss_mb']:.1f} MB of its "
                      f"own; goal 10 MB), {real['wakes_per_s']:.1f} wake-ups a second."]
    return lines


def means(points, seconds):
    """One mean point for each stretch of time: neighbouring points depend on each other. A stretch that was cut off, at
    either end, is left out: the mean of its few points would count as much as any other."""
    stretches = {}
    for point in points:
        stretches.setdefault(int(point[0] // seconds), []).append(point)
    most = max(map(len, stretches.values()), default=0)
    whole = [stretch for stretch in stretches.values() if 2 * len(stretch) >= most]
    return [tuple(sum(column) / len(column) for column in zip(*stretch)) for stretch in whole]


def slope(points):
    """Least squares: change per hour, and its standard error."""
    count = len(points)
    mean_x, mean_y = (sum(column) / count for column in zip(*points))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if count < 3 or not spread:
        return 0.0, 0.0
    slant = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = sum((y - mean_y - slant * (x - mean_x)) ** 2 for x, y in points) / (count - 2)
    return 3600 * slant, 3600 * (rest / spread) ** 0.5


def chart(path, title, series, unit):
    """A line chart as SVG: series by name, each a list of (x, y)."""
    width, height, left, bottom = 640, 260, 60, 40
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    if not xs:
        return
    low_x, high_x, high_y = min(xs), max(xs) or 1, max(ys) * 1.1 or 1
    place = lambda x, y: (left + (x - low_x) / ((high_x - low_x) or 1) * (width - left - 20),
                          height - bottom - y / high_y * (height - bottom - 30))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="12"><rect width="100%" height="100%" fill="white"/><text x="{left}" y="18">{title}</text>']
    for step in range(5):
        value = high_y * step / 4
        x, y = left, place(low_x, value)[1]
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{width - 20}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{shown(round(value, 4))}</text>')
    for number, (name, points) in enumerate(series.items()):
        colour = ("#1f77b4", "#d62728", "#2ca02c")[number % 3]
        line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points)
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>'
                   f'<text x="{left + 120 * number}" y="{height - 8}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{width - 20}" y="{height - 8}" text-anchor="end">{unit}</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def soak(folder):
    with open(os.path.join(folder, "soak.csv")) as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    warm = rows[len(rows) // 3:]
    memory = [(row["seconds"], row["master_mb"]) for row in warm]
    chart(os.path.join(folder, "soak-memory.svg"), "Memory of the master, MB",
          {"memory": [(row["seconds"], row["master_mb"]) for row in rows]}, "seconds")
    chart(os.path.join(folder, "soak-ping.svg"), "Ping of all, s",
          {"ping": [(row["seconds"], row["ping_s"]) for row in rows]}, "seconds")
    per_hour, error = slope(means(memory, 60))
    judged = "not distinguishable from zero" if abs(per_hour) < 2 * error else "more than chance"
    descriptors = {row["master_descriptors"] for row in warm}
    return [f"{rows[-1]['seconds'] / 60:.0f} minutes of jobs, events, pillar edits and key changes; {len(rows)} rounds. "
            f"After the first third: memory {min(m for _, m in memory):.1f} to {max(m for _, m in memory):.1f} MB, slope "
            f"of the minutes' means {per_hour:+.1f} ± {error:.1f} MB an hour ({judged}); descriptors {min(descriptors):.0f} to {max(descriptors):.0f}.", "",
            "![memory](results/soak-memory.svg)", "", "![ping](results/soak-ping.svg)"]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(FOLDER, "results")
    load = lambda name: json.load(open(os.path.join(folder, name)))
    lines = ["# What was measured", "",
             "Written by `bench/report.py` from the results in `bench/results`; `bench/README.md` says what each part does and "
             "which command makes it. Release builds; both makes on the same machine, one after the other. A ratio above 1 "
             "means that Halite needs less (for rates, marked *per second*: that it does less).", ""]
    machine = os.path.join(folder, "machine.txt")
    if os.path.exists(machine):
        lines += [open(machine).read().strip(), ""]
    for name, title in TITLES.items():
        if os.path.exists(os.path.join(folder, f"{name}.json")):
            lines += [f"## {title}", "", *compared(load(f"{name}.json")), "", *growth_of_graphs(load(f"{name}.json"))]
    if os.path.exists(os.path.join(folder, "swarm.json")):
        result = load("swarm.json")
        lines += ["## Thousands of minions", "", "Master and swarm share the machine's cores. ✓ goal met, ✗ missed.", "",
                  *swarm(result), ""]
        growth = [(size["minions"], at(size, "ping.seconds")) for size in result["sizes"] if at(size, "ping.seconds")]
        chart(os.path.join(folder, "swarm-ping.svg"), "Ping of all, s", {"ping": growth}, "minions")
        lines += ["![growth](results/swarm-ping.svg)", ""]
    if os.path.exists(os.path.join(folder, "soak.csv")):
        lines += ["## Soak", "", *soak(folder), ""]
    notes = os.path.join(folder, "notes.md")
    if os.path.exists(notes):
        lines += [open(notes).read().strip(), ""]
    with open(os.path.join(FOLDER, "report.md"), "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
