"""Times."""

import datetime
import time


def get_timestamp_at(time_in=None, time_at=None):
    now = datetime.datetime.now()
    if time_in:
        hours, _, minutes = str(time_in).partition("h")
        return time.mktime(now.timetuple()) + (int(hours or 0) * 60 + int(minutes.rstrip("m") or 0)) * 60
    if time_at:
        moment = datetime.datetime.strptime(time_at, "%H:%M")
        return time.mktime(now.replace(hour=moment.hour, minute=moment.minute, second=0).timetuple())
    return time.mktime(now.timetuple())


def get_time_at(time_in=None, time_at=None, out_fmt="%Y-%m-%dT%H:%M:%S"):
    return datetime.datetime.fromtimestamp(get_timestamp_at(time_in, time_at)).strftime(out_fmt)
