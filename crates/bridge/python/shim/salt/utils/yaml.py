"""YAML: by PyYAML where it is installed, else by Halite itself."""

try:
    import yaml as _yaml
    from yaml import YAMLError
except ImportError:
    _yaml = None

    class YAMLError(Exception):
        pass


class SaltYamlSafeLoader:
    pass


def safe_load(stream, Loader=None):
    text = stream.read() if hasattr(stream, "read") else stream
    if _yaml is not None:
        return _yaml.safe_load(text)
    from salt import _host

    return _host.call("slsutil.deserialize", "yaml", text)


def load(stream, Loader=None):
    return safe_load(stream)


def safe_dump(data, stream=None, **kwargs):
    kwargs.setdefault("default_flow_style", False)
    if _yaml is not None:
        kwargs.setdefault("allow_unicode", True)
        import salt.utils.data

        return _yaml.safe_dump(salt.utils.data._each(data, lambda value: value), stream, **kwargs)
    from salt import _host

    text = _host.call("slsutil.serialize", "yaml", data, **kwargs)
    if stream is not None:
        stream.write(text)
        return None
    return text


def dump(data, stream=None, **kwargs):
    kwargs.pop("Dumper", None)
    return safe_dump(data, stream, **kwargs)
