"""Job ids."""

import datetime
import os


def gen_jid(opts=None):
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d%H%M%S%f")
    return "{}_{}".format(stamp, os.getpid()) if (opts or {}).get("unique_jid") else stamp


def is_jid(jid):
    text = str(jid)
    return len(text.split("_")[0]) == 20 and text[:20].isdigit()


def jid_to_time(jid):
    jid = str(jid)
    if not is_jid(jid):
        return ""
    return datetime.datetime.strptime(jid[:20], "%Y%m%d%H%M%S%f").strftime("%Y, %b %d %H:%M:%S.%f")


def format_job_instance(job):
    names = (("Function", "fun"), ("Arguments", "arg"), ("Target", "tgt"), ("Target-type", "tgt_type"), ("User", "user"))
    return {title: job.get(key, "") for title, key in names}


def format_jid_instance(jid, job):
    return dict(format_job_instance(job), StartTime=jid_to_time(jid))
