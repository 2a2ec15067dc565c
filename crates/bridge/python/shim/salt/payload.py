"""msgpack, as Salt packs it."""

import salt.utils.msgpack as msgpack


def dumps(msg, use_bin_type=False):
    return msgpack.packb(msg)


def loads(msg, encoding=None, raw=False):
    return msgpack.unpackb(msg)


def package(payload):
    return dumps(payload)


def unpackage(package_):
    return loads(package_)


class Serial:
    def __init__(self, opts=None):
        pass

    def dumps(self, msg, use_bin_type=False):
        return dumps(msg)

    def loads(self, msg, encoding=None, raw=False):
        return loads(msg)

    def load(self, fn):
        return loads(fn.read())

    def dump(self, msg, fn):
        fn.write(dumps(msg))
