"""Records what Python's difflib answers for random pairs of texts: writes diffs.json beside it.

Run it with any Python 3: python3 record_diffs.py
"""
import difflib
import json
import pathlib
import random

rng = random.Random(20260101)
cases = []
for number in range(90):
    kinds = rng.choice([2, 3, 8, 40, 400])
    size = rng.choice([0, 1, 3, 10, 40, 120, 260]) if number < 80 else 450
    words = [f"line {kind}\n" for kind in range(kinds)]
    a = [rng.choice(words) for _ in range(size)]
    b = list(a)
    for _ in range(rng.choice([0, 1, 2, 5, 20])):
        at = rng.randint(0, len(b))
        do = rng.random()
        if do < 0.4:
            b[at:at] = [rng.choice(words + ["new\n"]) for _ in range(rng.randint(1, 4))]
        elif do < 0.8:
            del b[at : at + rng.randint(1, 4)]
        else:
            b[at : at + 3] = rng.sample(b, min(3, len(b)))
    if rng.random() < 0.1:
        rng.shuffle(b)
    if b and rng.random() < 0.3:
        b[-1] = b[-1].rstrip("\n")
    cases.append({"a": a, "b": b, "diff": "".join(difflib.unified_diff(a, b))})
path = pathlib.Path(__file__).with_name("diffs.json")
path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
