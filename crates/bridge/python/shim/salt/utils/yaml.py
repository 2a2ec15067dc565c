"""YAML as Salt reads and writes it: by PyYAML where it is installed, else by Halite itself.

Salt's YAML differs from PyYAML's: a key may not stand twice, dates are texts, and a zero in front does
not make a number octal.
"""

from collections import OrderedDict

try:
    import yaml as _yaml
    from yaml import YAMLError
    from yaml.constructor import ConstructorError
except ImportError:
    _yaml = None

    class YAMLError(Exception):
        pass

    class ConstructorError(YAMLError):
        pass


if _yaml is not None:

    class SaltYamlSafeLoader(_yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            self.flatten_mapping(node)
            found = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=deep)
                try:
                    is_twice = key in found
                except TypeError:
                    context = "While constructing a mapping {} found unacceptable key {}".format(
                        node.start_mark, key_node.value
                    )
                    raise ConstructorError(context) from None
                if is_twice:
                    raise ConstructorError(
                        "While constructing a mapping", node.start_mark,
                        "Conflicting ID '{}'".format(key), key_node.start_mark,
                    )
                found[key] = self.construct_object(value_node, deep=deep)
            return found

        def construct_whole_mapping(self, node):
            found = {}
            yield found
            found.update(self.construct_mapping(node))

        def construct_number(self, node):
            text = node.value.replace("_", "")
            if text.startswith("0") and not text.startswith(("0b", "0x", "0o")) and ":" not in text:
                return int(text.lstrip("0") or "0")
            return self.construct_yaml_int(node)

        def construct_text(self, node):
            return self.construct_scalar(node)

    SaltYamlSafeLoader.add_constructor("tag:yaml.org,2002:map", SaltYamlSafeLoader.construct_whole_mapping)
    SaltYamlSafeLoader.add_constructor("tag:yaml.org,2002:omap", SaltYamlSafeLoader.construct_whole_mapping)
    SaltYamlSafeLoader.add_constructor("tag:yaml.org,2002:int", SaltYamlSafeLoader.construct_number)
    for _tag in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:str", "tag:yaml.org,2002:python/unicode"):
        SaltYamlSafeLoader.add_constructor(_tag, SaltYamlSafeLoader.construct_text)

    class OrderedDumper(_yaml.Dumper):
        pass

    class SafeOrderedDumper(_yaml.SafeDumper):
        pass

    class IndentedSafeOrderedDumper(SafeOrderedDumper):
        def increase_indent(self, flow=False, indentless=False):
            return super().increase_indent(flow, False)

    def _in_order(dumper, data):
        return dumper.represent_mapping("tag:yaml.org,2002:map", list(data.items()))

    for _dumper in (OrderedDumper, SafeOrderedDumper):
        _dumper.add_multi_representer(OrderedDict, _in_order)

else:

    class SaltYamlSafeLoader:
        pass

    class OrderedDumper:
        pass

    class SafeOrderedDumper:
        pass

    class IndentedSafeOrderedDumper(SafeOrderedDumper):
        pass


def get_dumper(dumper_name):
    return {
        "OrderedDumper": OrderedDumper,
        "SafeOrderedDumper": SafeOrderedDumper,
        "IndentedSafeOrderedDumper": IndentedSafeOrderedDumper,
    }.get(dumper_name)


def load(stream, Loader=SaltYamlSafeLoader):
    text = stream.read() if hasattr(stream, "read") else stream
    if _yaml is not None:
        return _yaml.load(text, Loader=Loader or SaltYamlSafeLoader)
    from salt import _host

    return _host.call("slsutil.deserialize", "yaml", text)


def safe_load(stream, Loader=SaltYamlSafeLoader):
    return load(stream, Loader)


def dump(data, stream=None, **kwargs):
    if _yaml is not None:
        kwargs.setdefault("allow_unicode", True)
        kwargs.setdefault("default_flow_style", None)
        kwargs.setdefault("Dumper", OrderedDumper)
        return _yaml.dump(_plain(data), stream, **kwargs)
    from salt import _host

    kwargs.pop("Dumper", None)
    text = _host.call("slsutil.serialize", "yaml", data, **kwargs)
    if stream is not None:
        stream.write(text)
        return None
    return text


def safe_dump(data, stream=None, **kwargs):
    kwargs["Dumper"] = SafeOrderedDumper
    return dump(data, stream, **kwargs)


def _plain(data):
    """Views of dicts (dunders among them) as dicts, in the same order."""
    from collections.abc import Mapping

    if isinstance(data, (dict, list, tuple)) and type(data) not in (dict, list, tuple, OrderedDict):
        is_mapping = isinstance(data, dict)
        data = OrderedDict(data.items()) if is_mapping else data
    if isinstance(data, Mapping):
        made = ((key, _plain(value)) for key, value in data.items())
        return OrderedDict(made) if isinstance(data, OrderedDict) else dict(made)
    if isinstance(data, list):
        return [_plain(value) for value in data]
    return data
