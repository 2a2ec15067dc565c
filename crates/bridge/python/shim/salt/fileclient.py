"""Files of the file server, through Halite."""

from salt import _host


def get_file_client(opts, pillar=False):
    return Client(opts)


class Client:
    def __init__(self, opts):
        self.opts = opts

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def destroy(self):
        pass

    def cache_file(self, path, saltenv="base", **kwargs):
        return _host.call("cp.cache_file", path, saltenv=saltenv)

    def get_file(self, path, dest="", makedirs=False, saltenv="base", **kwargs):
        return _host.call("cp.get_file", path, dest, saltenv=saltenv, makedirs=makedirs)

    def file_list(self, saltenv="base", prefix=""):
        return _host.call("cp.list_master", saltenv=saltenv, prefix=prefix)

    def dir_list(self, saltenv="base", prefix=""):
        return _host.call("cp.list_master_dirs", saltenv=saltenv, prefix=prefix)

    def is_cached(self, path, saltenv="base", **kwargs):
        return _host.call("cp.is_cached", path, saltenv=saltenv)


LocalClient = RemoteClient = FSClient = Client
