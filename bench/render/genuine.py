"""Measures Python: `genuine.py ENGINE WORKLOAD TEMPLATES YAML SECONDS` prints one JSON object.

Engine `salt` calls Salt's own renderer functions as a minion does; `python` is bare Jinja2 with
compiled templates, and bare PyYAML on libyaml. The context is that of src/main.rs.
"""

import hashlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time

CONTEXT = {
    "prefix": "/srv",
    "settings": {"home": "/srv/home"},
    "grains": {"os_family": "Debian"},
}


def jinja_of_salt(templates, name):
    import salt.config
    import salt.utils.templates

    scratch = tempfile.mkdtemp()
    opts = salt.config.DEFAULT_MINION_OPTS.copy()
    opts.update(
        root_dir=scratch,
        cachedir=os.path.join(scratch, "cache"),
        conf_file=os.path.join(scratch, "minion"),
        file_client="local",
        file_roots={"base": [templates]},
        pillar_roots={"base": [templates]},
    )
    with open(os.path.join(templates, name)) as handle:
        text = handle.read()
    context = dict(CONTEXT, opts=opts, saltenv="base", sls=name, salt={}, pillar={})

    def render():
        # Salt adds to the context it is handed.
        return salt.utils.templates.render_jinja_tmpl(
            text, dict(context), os.path.join(templates, name)
        )

    return render


def jinja_of_python(templates, name):
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    return lambda: environment.get_template(name).render(CONTEXT)


def yaml_of_salt(path):
    import salt.utils.yaml

    with open(path) as handle:
        text = handle.read()
    return lambda: salt.utils.yaml.safe_load(text)


def yaml_of_python(path):
    import yaml

    with open(path) as handle:
        text = handle.read()
    return lambda: yaml.load(text, Loader=yaml.CSafeLoader)


def main():
    engine, workload, templates, path, seconds = sys.argv[1:]
    if workload == "yaml":
        run = {"salt": yaml_of_salt, "python": yaml_of_python}[engine](path)
    else:
        make = {"salt": jinja_of_salt, "python": jinja_of_python}[engine]
        run = make(templates, workload + ".sls")
    result = run()
    if not isinstance(result, str):
        result = json.dumps(result)
    times = []
    end = time.perf_counter() + float(seconds)
    while time.perf_counter() < end or len(times) < 5:
        before = time.process_time()
        run()
        times.append(time.process_time() - before)
    print(
        json.dumps(
            {
                "ms": statistics.median(times) * 1000,
                "runs": len(times),
                "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                "sha256": hashlib.sha256(result.strip().encode()).hexdigest(),
            }
        )
    )


main()
