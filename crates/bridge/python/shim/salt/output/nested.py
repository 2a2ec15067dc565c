"""Data as people read it."""

import salt.output


def output(ret, **kwargs):
    return salt.output.out_format(ret, "nested", **kwargs)
