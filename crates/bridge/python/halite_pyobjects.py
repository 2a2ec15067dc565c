"""The renderer `pyobjects`: states written as calls, `File.managed('/etc/motd', mode='644')`.

Each state module is a factory (`ssh_auth` is `SshAuth`); calling one of its functions declares a
state, calling the factory itself names a state for a requisite. Within `with` all states require
the one of the `with`. `from salt://file import name` takes names from another file of this kind.
"""

import fnmatch
import re

import halite_loader as loader

REQUISITES = {
    kind + form
    for kind in ("require", "watch", "use", "listen", "onchanges", "onfail", "prereq")
    for form in ("", "_in", "_any")
}


class DuplicateState(Exception):
    pass


class InvalidFunction(Exception):
    pass


class Registry:
    """What one file declares."""

    def __init__(self):
        self.states = {}
        self.extends = {}
        self.includes = []
        self.scopes = []

    def data(self):
        found = {}
        if self.includes:
            found["include"] = list(self.includes)
        if self.extends:
            found["extend"] = self.extends
        found.update(self.states)
        return found

    def add(self, id_, full, kwargs):
        kwargs = {key: references(key, value) for key, value in kwargs.items()}
        if self.scopes:
            own = kwargs.get("require", [])
            own = list(own) if isinstance(own, (list, tuple)) else [own]
            kwargs["require"] = own + [dict(scope) for scope in self.scopes]
        args = [{key: kwargs[key]} for key in sorted(kwargs)]
        into = self.states
        if isinstance(id_, Extend):
            into, id_ = self.extends, id_.name
        states = into.setdefault(id_, {})
        if full in states:
            raise DuplicateState("A state with id ''{}'', type ''{}'' exists".format(id_, full))
        states[full] = args
        return State(self, id_, full)


class Extend:
    def __init__(self, name):
        self.name = name


class Requisite:
    """A state that is named."""

    def __init__(self, registry, module, id_):
        self.registry = registry
        self.pair = {module: id_}

    def __enter__(self):
        self.registry.scopes.append(self.pair)
        return self

    def __exit__(self, *_):
        self.registry.scopes.pop()


class State(Requisite):
    """A state that is declared."""

    def __init__(self, registry, id_, full):
        super().__init__(registry, full.partition(".")[0], id_)
        self.id_ = id_
        self.full = full

    def __str__(self):
        return "{} = {}".format(self.id_, self.full)


def references(key, value):
    """Names states in requisites as data."""
    if key not in REQUISITES:
        return value
    if isinstance(value, (Requisite, dict)):
        value = [value]
    if isinstance(value, (list, tuple)):
        return [dict(one.pair) if isinstance(one, Requisite) else one for one in value]
    return value


class Factory:
    """A state module."""

    def __init__(self, registry, module, functions):
        self._registry = registry
        self._module = module
        self._functions = functions

    def __getattr__(self, name):
        # `import` and the like cannot be attributes.
        plain = name.rstrip("_") if name not in self._functions else name
        if plain not in self._functions:
            raise InvalidFunction(
                "The function '{}' does not exist in the StateFactory for '{}'".format(name, self._module)
            )
        full = self._module + "." + plain

        def make_state(id_, **kwargs):
            return self._registry.add(id_, full, kwargs)

        return make_state

    def __call__(self, id_, requisite="require"):
        return Requisite(self._registry, self._module, id_)


class SaltObject:
    """`salt.module.function(…)`"""

    def __init__(self, functions, module=None):
        self._functions = functions
        self._module = module

    def __getattr__(self, name):
        if self._module is None:
            return SaltObject(self._functions, name)
        full = self._module + "." + name
        if full not in self._functions:
            raise AttributeError(full)
        return self._functions[full]

    def __getitem__(self, name):
        return self._functions[name]


def camel(module):
    return "".join(part[:1].upper() + part[1:] for part in module.split("_"))


def maps(functions):
    """The base of classes that pick their values by grains."""

    class Meta(type):
        def __init__(cls, name, bases, members):
            super().__init__(name, bases, members)
            if not bases:
                return
            branches = []
            for label, branch in members.items():
                if label.startswith("__") or not isinstance(branch, type):
                    continue
                grain = getattr(branch, "__grain__", "os_family")
                match = getattr(branch, "__match__", label)
                priority = members.get("priority", ())
                place = priority.index(grain) if grain in priority else len(priority)
                branches.append((place, grain, match, branch))
            for _, grain, match, branch in sorted(branches, key=lambda one: one[0]):
                value = functions["grains.get"](grain, "")
                values = value if isinstance(value, (list, tuple)) else [value]
                if any(fnmatch.fnmatchcase(str(one), str(match)) for one in values):
                    for key, inner in vars(branch).items():
                        if not key.startswith("__"):
                            setattr(cls, key, inner)
            merge = members.get("merge")
            if merge:
                for key, value in (functions["pillar.get"](merge) or {}).items():
                    setattr(cls, str(key), value)

    return Meta("Map", (), {})


def names(registry, saltenv, sls, context):
    """The globals of a file."""
    functions = loader.Functions("modules")
    found = {}
    modules = {}
    for full in loader.Functions("states"):
        module, _, function = full.partition(".")
        modules.setdefault(module, set()).add(function)
    for module, known in modules.items():
        found[camel(module)] = Factory(registry, module, known)

    def include(*files):
        registry.includes.extend(files)

    found.update(
        {
            "include": include,
            "extend": Extend,
            "Map": maps(functions),
            "salt": SaltObject(functions),
            "pillar": functions["pillar.get"],
            "grains": functions["grains.get"],
            "mine": functions["mine.get"],
            "config": functions["config.get"],
            "__salt__": functions,
            "__grains__": loader.GRAINS,
            "__pillar__": loader.PILLAR,
            "__opts__": loader.OPTS,
            "__sls__": sls,
            "__env__": saltenv,
        }
    )
    found.update(context)
    return found


IMPORT = re.compile(r"^\s*import\s+(salt://\S+)\s*$")
FROM = re.compile(r"^\s*from\s+(salt://\S+)\s+import\s+(.+?)\s*$")


def execute(source, path, scope, saltenv, depth=0):
    """Runs a file; its lines keep their numbers."""
    if depth > 50:
        raise ImportError("'{}' imports itself".format(path))
    lines = []
    for line in source.split("\n"):
        whole, some = IMPORT.match(line), FROM.match(line)
        if not whole and not some:
            lines.append(line)
            continue
        lines.append("")
        wanted = (whole or some).group(1)
        text = scope["__salt__"]["cp.get_file_str"](wanted, saltenv)
        if not isinstance(text, str):
            raise ImportError("Could not find the file '{}'".format(wanted))
        inner = dict(scope)
        before = set(inner)
        execute(text, wanted, inner, saltenv, depth + 1)
        if whole:
            scope.update({key: inner[key] for key in inner if key not in before})
            continue
        for part in some.group(2).split(","):
            name, _, alias = (word.strip() for word in part.strip().partition(" as "))
            if name not in inner:
                raise ImportError("'{}' was not found in '{}'".format(name, wanted))
            scope[alias or name] = inner[name]
    exec(compile("\n".join(lines), path, "exec"), scope)


def render(source, path, saltenv, sls, context):
    registry = Registry()
    scope = names(registry, saltenv, sls, context)
    execute(source, path, scope, saltenv)
    return registry.data()
