"""msgpack: the library where it is installed, else this."""

import datetime
import struct

try:
    import msgpack as _library
except ImportError:
    _library = None


class UnpackValueError(ValueError):
    pass


def packb(value, **kwargs):
    out = bytearray()
    _pack(value, out)
    return bytes(out)


def unpackb(data, **kwargs):
    value, at = _unpack(memoryview(data), 0)
    if at != len(data):
        raise UnpackValueError("{} bytes follow the value".format(len(data) - at))
    return value


dumps, loads = packb, unpackb


def pack(value, stream, **kwargs):
    stream.write(packb(value))


def unpack(stream, **kwargs):
    return unpackb(stream.read())


dump, load = pack, unpack


def _pack(value, out):
    if value is None:
        out.append(0xC0)
    elif value is True:
        out.append(0xC3)
    elif value is False:
        out.append(0xC2)
    elif isinstance(value, int):
        _pack_int(value, out)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xCB, value)
    elif isinstance(value, str):
        body = value.encode("utf-8", "surrogateescape")
        _pack_head(len(body), out, 0xA0, 31, (0xD9, 0xDA, 0xDB))
        out += body
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _pack_head(len(value), out, None, -1, (0xC4, 0xC5, 0xC6))
        out += bytes(value)
    elif isinstance(value, dict) or hasattr(value, "items"):
        items = list(value.items())
        _pack_head(len(items), out, 0x80, 15, (None, 0xDE, 0xDF))
        for key, item in items:
            _pack(key, out)
            _pack(item, out)
    elif isinstance(value, (list, tuple, set, frozenset)):
        _pack_head(len(value), out, 0x90, 15, (None, 0xDC, 0xDD))
        for item in value:
            _pack(item, out)
    elif isinstance(value, datetime.datetime):
        body = value.strftime("%Y%m%dT%H:%M:%S.%f").encode()
        out += struct.pack(">BBb", 0xC7, len(body), 78) + body
    else:
        raise TypeError("can not serialize {!r} object".format(type(value).__name__))


def _pack_int(value, out):
    if 0 <= value < 128:
        out.append(value)
    elif -32 <= value < 0:
        out.append(value & 0xFF)
    elif 0 <= value < 1 << 64:
        for mark, form, top in ((0xCC, ">B", 8), (0xCD, ">H", 16), (0xCE, ">I", 32), (0xCF, ">Q", 64)):
            if value < 1 << top:
                out.append(mark)
                out += struct.pack(form, value)
                return
    elif -(1 << 63) <= value < 0:
        for mark, form, top in ((0xD0, ">b", 7), (0xD1, ">h", 15), (0xD2, ">i", 31), (0xD3, ">q", 63)):
            if value >= -(1 << top):
                out.append(mark)
                out += struct.pack(form, value)
                return
    else:
        _pack(str(value), out)


def _pack_head(size, out, fixed, most, marks):
    if fixed is not None and size <= most:
        out.append(fixed | size)
    elif size < 256 and marks[0] is not None:
        out += bytes((marks[0], size))
    elif size < 65536:
        out += struct.pack(">BH", marks[1], size)
    else:
        out += struct.pack(">BI", marks[2], size)


_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}
_LENGTHS = {
    0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4,
    0xC7: 1, 0xC8: 2, 0xC9: 4,
}
_EXTS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def _unpack(data, at):
    mark = data[at]
    at += 1
    if mark < 0x80:
        return mark, at
    if mark >= 0xE0:
        return mark - 256, at
    if mark == 0xC0:
        return None, at
    if mark in (0xC2, 0xC3):
        return mark == 0xC3, at
    if mark in _NUMBERS:
        form = _NUMBERS[mark]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if mark in _EXTS:
        return _ext(data, at, _EXTS[mark])
    if mark < 0x90:
        return _map(data, at, mark & 15)
    if mark < 0xA0:
        return _array(data, at, mark & 15)
    if mark < 0xC0:
        return _text(data, at, mark & 31, True)
    size = int.from_bytes(data[at : at + _LENGTHS[mark]], "big")
    at += _LENGTHS[mark]
    if mark in (0xD9, 0xDA, 0xDB):
        return _text(data, at, size, True)
    if mark in (0xC4, 0xC5, 0xC6):
        return _text(data, at, size, False)
    if mark in (0xDC, 0xDD):
        return _array(data, at, size)
    if mark in (0xDE, 0xDF):
        return _map(data, at, size)
    return _ext(data, at, size)


def _text(data, at, size, is_text):
    body = bytes(data[at : at + size])
    if len(body) != size:
        raise UnpackValueError("the data ends too early")
    if is_text:
        try:
            return body.decode("utf-8"), at + size
        except UnicodeDecodeError:
            pass
    return body, at + size


def _array(data, at, size):
    items = []
    for _ in range(size):
        item, at = _unpack(data, at)
        items.append(item)
    return items, at


def _map(data, at, size):
    made = {}
    for _ in range(size):
        key, at = _unpack(data, at)
        made[tuple(key) if isinstance(key, list) else key], at = _unpack(data, at)
    return made, at


def _ext(data, at, size):
    kind, body = data[at], bytes(data[at + 1 : at + 1 + size])
    if kind == 78:
        return datetime.datetime.strptime(body.decode(), "%Y%m%dT%H:%M:%S.%f"), at + 1 + size
    return body, at + 1 + size
