"""Text."""

import difflib
import fnmatch
import logging
import re
import shlex
import time

log = logging.getLogger(__name__)


def to_bytes(value, encoding=None, errors="strict"):
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, str):
        return value.encode(encoding or "utf-8", errors)
    raise TypeError("expected str, bytes, or bytearray")


def to_str(value, encoding=None, errors="strict", normalize=False):
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        encodings = [encoding] if isinstance(encoding, str) else (encoding or ["utf-8", "latin-1"])
        for one in encodings:
            try:
                return bytes(value).decode(one, errors)
            except UnicodeDecodeError:
                continue
        return bytes(value).decode("utf-8", "replace")
    raise TypeError("expected str, bytes, or bytearray not {}".format(type(value)))


def to_unicode(value, encoding=None, errors="strict", normalize=False):
    return to_str(value, encoding, errors, normalize)


def to_none(value):
    return None if value is None or str(value).strip().lower() in ("none", "") else value


def to_num(value):
    for kind in (int, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            pass
    return value


def is_quoted(value):
    return value[0] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else ""


def dequote(value):
    return value[1:-1] if is_quoted(value) else value


def is_hex(value):
    try:
        int(value, 16)
        return True
    except (TypeError, ValueError):
        return False


def is_binary(data):
    return b"\0" in to_bytes(data) if data and isinstance(data, (str, bytes)) else False


def random(size=32):
    import secrets
    import string

    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(size))


def contains_whitespace(text):
    return any(char.isspace() for char in text)


def human_to_bytes(size, default_unit="B", handle_metric=False):
    found = re.match(r"([0-9.]+)\s*([a-zA-Z]*)$", str(size).strip())
    if not found:
        return 0
    unit = (found.group(2) or default_unit).lower()
    power = "bkmgtpezy".find(unit[:1])
    base = 1000 if handle_metric and unit.endswith("b") and "i" not in unit else 1024
    return int(float(found.group(1)) * base ** max(0, power))


def build_whitespace_split_regex(text):
    """A pattern for the words of a text, whatever space is between them."""
    space = r"(?:[\s]+)?"
    lexer = shlex.shlex(text, posix=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = [
        "".join(re.escape(part) + (space if not part.isspace() else "") for part in re.split(r"(\W)", word) if part)
        for word in lexer
    ]
    return r"(?m)^" + space + "".join(words) + r"$"


def expr_match(line, expr):
    """Tells whether text matches a glob or, failing that, a regular expression."""
    if line == expr:
        return True
    if not (isinstance(line, str) and isinstance(expr, str)):
        return False
    if fnmatch.fnmatch(line, expr):
        return True
    try:
        return bool(re.match(r"\A{}\Z".format(expr), line))
    except re.error:
        return False


def check_whitelist_blacklist(value, whitelist=None, blacklist=None):
    def listed(names):
        if not names:
            return []
        return [names] if isinstance(names, str) else list(names)

    if any(expr_match(value, expr) for expr in listed(blacklist)):
        return False
    white = listed(whitelist)
    return any(expr_match(value, expr) for expr in white) if white else True


def check_include_exclude(path_str, include_pat=None, exclude_pat=None):
    def matches(patterns):
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            if pattern.startswith("E@"):
                if re.search(pattern[2:], path_str):
                    return True
            elif fnmatch.fnmatch(path_str, pattern):
                return True
        return False

    included = matches(include_pat) if include_pat else True
    excluded = matches(exclude_pat) if exclude_pat else False
    return included and not excluded


def print_cli(message, retries=10, step=0.01):
    print(message)
    time.sleep(0)


def get_context(template, line, num_lines=5, marker=None):
    lines = template.splitlines()
    if line > len(lines):
        return template
    first, last = max(0, line - num_lines - 1), min(len(lines), line + num_lines)
    shown = lines[first:last]
    if marker and 0 <= line - 1 - first < len(shown):
        shown[line - 1 - first] += marker
    if first > 0:
        shown.insert(0, "[...]")
    if last < len(lines):
        shown.append("[...]")
    return "\n".join(["---"] + shown + ["---"])


def get_diff(a, b, *args, **kwargs):
    return "".join(difflib.unified_diff(list(a), list(b), *args, **kwargs))


def camel_to_snake_case(text):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", text).lower()


def snake_to_camel_case(text, uppercamel=False):
    made = "".join(part.capitalize() for part in text.split("_"))
    return made if uppercamel or not made else made[0].lower() + made[1:]
