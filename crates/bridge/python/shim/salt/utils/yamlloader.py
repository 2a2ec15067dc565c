"""YAML, read."""

from salt.utils.yaml import SaltYamlSafeLoader, load  # noqa: F401
