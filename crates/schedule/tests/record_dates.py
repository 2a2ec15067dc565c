#!/usr/bin/env python3
"""Records what Python's dateutil, by which genuine Salt reads `when`, makes of texts.

Run it with an interpreter that can import `dateutil`: it asks anew about every text of
`dates.yaml`, on Monday, 16 November 2026, and writes the file again. Left out are fractions of
seconds, which are of no use to a schedule, and what ours reads although dateutil does not.
"""

import datetime
import json
import os

import yaml
from dateutil import parser

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dates.yaml")
TODAY = datetime.datetime(2026, 11, 16)
HEAD = """\
# What Python's dateutil, by which genuine Salt reads `when`, makes of texts on Monday 2026-11-16; null: no
# date. Made by record_dates.py.
"""


def read(text):
    try:
        return parser.parse(text, default=TODAY).replace(tzinfo=None).isoformat()
    except (ValueError, OverflowError):
        return None


def main():
    with open(PATH) as file:
        cases = yaml.safe_load(file)
    with open(PATH, "w") as file:
        file.write(HEAD)
        for text, _ in cases:
            file.write(f"- {json.dumps([text, read(text)])}\n")


if __name__ == "__main__":
    main()
