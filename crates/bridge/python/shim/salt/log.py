"""Logging."""

import logging

from logging import getLogger  # noqa: F401

LOG_LEVELS = {
    "all": 0, "garbage": 1, "trace": 5, "debug": 10, "profile": 15, "info": 20, "warning": 30, "error": 40,
    "critical": 50, "quiet": 1000,
}


def setup_console_logger(log_level="error", **kwargs):
    logging.basicConfig(level=LOG_LEVELS.get(log_level, 30))


def setup_logging(*args, **kwargs):
    logging.basicConfig()
