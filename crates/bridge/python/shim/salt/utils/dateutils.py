"""Dates."""

import datetime


def date_cast(date):
    """A date from nothing (now), a number of seconds, or a text; what is a date already stays."""
    if date is None:
        return datetime.datetime.now()
    if isinstance(date, datetime.datetime):
        return date
    if isinstance(date, str):
        try:
            return datetime.datetime.fromisoformat(date)
        except ValueError:
            pass
    try:
        return datetime.datetime.fromtimestamp(float(date))
    except (TypeError, ValueError, OverflowError, OSError):
        raise ValueError("Unable to parse a date from {!r}".format(date)) from None


def strftime(date=None, format="%Y-%m-%d"):
    return date_cast(date).strftime(format)


def total_seconds(td):
    return td.total_seconds()
