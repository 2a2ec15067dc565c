#!/usr/bin/env python3
"""
Record sls_context.json: the template variables genuine Salt derives from a path and an SLS name.

Usage:  <python with salt installed> record_sls_context.py sls_context.json
"""
import json
import sys

from salt.utils.templates import generate_sls_context

CACHE = "/var/cache/salt/minion/files/base/"
CASES = [
    (CACHE + "init.sls", "init"),
    (CACHE + "web.sls", "web"),
    (CACHE + "web/init.sls", "web"),
    (CACHE + "web/nginx.sls", "web.nginx"),
    (CACHE + "web/nginx/init.sls", "web.nginx"),
    (CACHE + "web/nginx/init.sls", "web/nginx"),
    (CACHE + "web/nginx/init.sls", "web.nginx."),
    (CACHE + "web/nginx/init.sls", "web.nginx.init"),
    (CACHE + "a/b/c/d.sls", "a.b.c.d"),
    (CACHE + "web//nginx/./init.sls", "web.nginx"),
    (CACHE + "web/files/nginx.conf", "web/files/nginx.conf"),
    (CACHE + "web/files/nginx.conf", "web.nginx"),
    (CACHE + "nginx.conf", "nginx.conf"),
    (CACHE + "map.jinja", "map.jinja"),
    (CACHE + "web/map.jinja", "/web/map.jinja"),
    (CACHE + "web/init.sls", ""),
    ("web.sls", ""),
    ("/srv/salt/top.sls", "top"),
    ("/srv/pillar/top.sls", ""),
    (None, "web.nginx"),
    (None, "web"),
    (None, ""),
    ("", "web.nginx"),
    (CACHE + "other.sls", "web"),
    (CACHE + "myweb.sls", "web"),
    (CACHE + "x/web.sls", "web"),
    (CACHE + "sub_dir/my-app/init.sls", "sub_dir.my-app"),
]


def main(out):
    cases = []
    for path, sls in CASES:
        cases.append({"path": path, "sls": sls, "expected": generate_sls_context(path, sls)})
    with open(out, "w", encoding="utf-8") as handle:
        json.dump(cases, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
