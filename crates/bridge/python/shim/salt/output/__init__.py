"""Showing data."""

import json


def out_format(data, out, opts=None, **kwargs):
    from salt import _host

    found = _host.functions()
    if found is not None and "out.string_format" in found:
        return found["out.string_format"](data, out=out)
    return json.dumps(data, indent=4)


def display_output(data, out=None, opts=None, **kwargs):
    print(out_format(data, out or "nested", opts, **kwargs))


string_format = out_format
