"""Checks of addresses."""

import ipaddress
import re


def mac(addr):
    return bool(re.match(r"([0-9a-fA-F]{1,2}[:-]){5}[0-9a-fA-F]{1,2}$", str(addr)))


def _fits(addr, kind):
    try:
        kind(addr)
        return True
    except ValueError:
        return False


def ipv4_addr(addr):
    return _fits(addr, lambda text: ipaddress.IPv4Interface(str(text)))


def ipv6_addr(addr):
    return _fits(addr, lambda text: ipaddress.IPv6Interface(str(text)))


def ip_addr(addr):
    return ipv4_addr(addr) or ipv6_addr(addr)


def netmask(mask):
    return _fits(mask, lambda text: ipaddress.IPv4Network("0.0.0.0/" + str(text)))
