"""Makes the files that came over the socket importable.

The host's own modules (`halite_*`) are found first; the shim package `salt` last, so that a genuine
`salt` in the interpreter wins. Nothing is written to disk.
"""

from importlib.machinery import ModuleSpec
import sys


class Finder:
    """A finder and a loader. Not by name: `importlib.abc` imports dozens of modules."""

    def __init__(self, files):
        self.files = files

    def find_spec(self, name, path=None, target=None):
        entry = self.files.get(name)
        if entry is None:
            return None
        return ModuleSpec(name, self, origin=entry[0], is_package=entry[2])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file, source, is_package = self.files[module.__name__]
        module.__file__ = file
        if is_package:
            module.__path__ = []
        exec(compile(source, file, "exec"), module.__dict__)

    def get_source(self, name):
        return self.files[name][1]


def install(files):
    own = {name: entry for name, entry in files.items() if name.startswith("halite_")}
    shim = {name: entry for name, entry in files.items() if name not in own}
    sys.meta_path.insert(0, Finder(own))
    sys.meta_path.append(Finder(shim))
