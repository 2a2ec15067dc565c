"""`salt://` addresses."""

from urllib.parse import urlparse, urlunparse


def parse(url):
    """Returns path and environment of `salt://path?saltenv=env`."""
    if not url.startswith("salt://"):
        return url, None
    path, _, query = url[len("salt://") :].partition("?")
    env = query[len("saltenv=") :] if query.startswith("saltenv=") else None
    return path, env


def create(path, saltenv=None):
    return "salt://" + path.lstrip("/") + ("?saltenv={}".format(saltenv) if saltenv else "")


def validate(url, protos):
    return urlparse(url).scheme in protos


def is_escaped(url):
    return url.startswith(("salt://|", "|"))


def unescape(url):
    if url.startswith("salt://|"):
        return url.replace("salt://|", "salt://", 1)
    return url[1:] if url.startswith("|") else url


def escape(url):
    """Marks an address, so that what looks like a query is part of the name."""
    if is_escaped(url):
        return url
    if url.startswith("salt://"):
        path, env = parse(url)
        return create("|" + path, env)
    return "|" + url


def split_env(url):
    """An address without its environment, and the environment."""
    if not url.startswith("salt://"):
        return url, None
    path, env = parse(url)
    return create(path), env


def redact_http_basic_auth(text):
    import re

    return re.sub(r"(https?)://[^@/]+@", r"\1://<redacted>@", text)


def strip_proto(url):
    return url.partition("://")[2] or url


def add_env(url, saltenv):
    return create(parse(url)[0], saltenv)


def add_http_basic_auth(url, user=None, password=None, https_only=False):
    parts = urlparse(url)
    if not user:
        return url
    secret = user if password is None else "{}:{}".format(user, password)
    return urlunparse(parts._replace(netloc="{}@{}".format(secret, parts.netloc.rpartition("@")[2])))
