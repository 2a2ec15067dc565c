"""HTTP."""

import json as _json
import urllib.error
import urllib.parse
import urllib.request

from salt import _host


def query(url, method="GET", params=None, data=None, header_dict=None, header_list=None, username=None,
          password=None, decode=False, decode_type="auto", status=False, headers=False, text=False,
          timeout=30, verify_ssl=True, **kwargs):
    """Asks a web server: through Halite where it runs inside it, else with the standard library."""
    found = _host.functions()
    if found is not None and "http.query" in found:
        given = dict(kwargs, method=method, decode=decode, decode_type=decode_type, status=status, headers=headers,
                     text=text)
        for name, value in (("params", params), ("data", data), ("header_dict", header_dict),
                            ("header_list", header_list), ("username", username), ("password", password)):
            if value is not None:
                given[name] = value
        return found["http.query"](url, **{key: value for key, value in given.items() if key != "opts"})
    if params:
        url += ("&" if "?" in url else "?") + urllib.parse.urlencode(params)
    body = data.encode() if isinstance(data, str) else data
    request = urllib.request.Request(url, data=body, method=method, headers=dict(header_dict or {}))
    for line in header_list or ():
        name, _, value = line.partition(":")
        request.add_header(name.strip(), value.strip())
    ret = {}
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            code, content, got = answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        code, content, got = error.code, error.read(), dict(error.headers)
        ret["error"] = "HTTP {}: {}".format(code, error.reason)
    except (urllib.error.URLError, OSError) as error:
        return {"error": str(error)}
    body = content.decode("utf-8", "replace")
    if status:
        ret["status"] = code
    if headers:
        ret["headers"] = got
    if text or not decode:
        ret["text" if text else "body"] = body
    if decode:
        ret["dict"] = _json.loads(body)
    return ret


def session(**kwargs):
    import requests

    made = requests.session()
    made.headers.update(kwargs.get("headers") or {})
    return made
