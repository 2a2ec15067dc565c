"""Times."""

import datetime
import time

FORMATS = ("%H%M", "%Hh%M", "%I%p", "%I:%M%p", "%I:%M %p")


def utcnow():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)


def utcfromtimestamp(timestamp):
    return datetime.datetime.fromtimestamp(timestamp, datetime.timezone.utc).replace(tzinfo=None)


def get_timestamp_at(time_in=None, time_at=None):
    """When it will be in some time (`1h30`, `90`), or at a time of the day (`1h30`, `1:30pm`)."""
    if time_in:
        hours, _, minutes = str(time_in).replace("h", ":").replace("m", "").rpartition(":")
        delay = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        return time.mktime((utcnow() + delay).timetuple())
    if time_at is None:
        return None
    if isinstance(time_at, (int, float)):
        return time_at
    for form in FORMATS:
        try:
            return time.mktime(datetime.datetime.strptime(time_at, form).timetuple())
        except ValueError:
            continue
    raise ValueError("{} does not match any of the accepted formats: {}".format(time_at, ", ".join(FORMATS)))


def get_time_at(time_in=None, time_at=None, out_fmt="%Y-%m-%dT%H:%M:%S"):
    return datetime.datetime.fromtimestamp(get_timestamp_at(time_in, time_at)).strftime(out_fmt)
