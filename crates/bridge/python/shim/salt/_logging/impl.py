"""Levels by their names."""

from salt.log import LOG_LEVELS  # noqa: F401
