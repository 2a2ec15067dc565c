#!/usr/bin/env python3
"""
Recreate jinja_names.json: the names of all filters, tests and globals that genuine Salt offers to
templates.

Usage:  <python with salt installed> gen_jinja_names.py [output.json]
"""
import json
import os
import sys

import jinja2.sandbox
import salt.modules.match  # noqa: F401  registers `ifelse`
import salt.utils.http  # noqa: F401
import salt.utils.jinja
import salt.utils.templates  # noqa: F401
from salt.utils.decorators.jinja import JinjaFilter, JinjaGlobal, JinjaTest

env = jinja2.sandbox.SandboxedEnvironment(extensions=[salt.utils.jinja.SerializerExtension])
names = {
    "filters": sorted({*env.filters, *JinjaFilter.salt_jinja_filters}),
    "tests": sorted({*env.tests, *JinjaTest.salt_jinja_tests, "list"}),
    "globals": sorted({*env.globals, *JinjaGlobal.salt_jinja_globals, "odict", "show_full_context"}),
}
here = os.path.dirname(os.path.abspath(__file__))
with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "jinja_names.json"), "w", encoding="utf-8") as fh:
    json.dump(names, fh, indent=1)
    fh.write("\n")
print({kind: len(own) for kind, own in names.items()})
