"""Pieces of the standard library that Salt's modules take from here."""

import importlib.metadata as importlib_metadata  # noqa: F401
import ipaddress  # noqa: F401
import sys  # noqa: F401
