"""Addresses. Interfaces come from Halite."""

import ipaddress
import socket

from salt import _host


def host_to_ips(host):
    try:
        return sorted({entry[4][0] for entry in socket.getaddrinfo(host, None)}) or None
    except OSError:
        return None


def get_fqhostname():
    return socket.getfqdn()


def get_hostname():
    return socket.gethostname()


def generate_minion_id():
    return socket.getfqdn()


def is_ip(ip):
    try:
        ipaddress.ip_address(ip)
        return True
    except ValueError:
        return False


def is_ipv4(ip):
    return is_ip(ip) and ipaddress.ip_address(ip).version == 4


def is_ipv6(ip):
    return is_ip(ip) and ipaddress.ip_address(ip).version == 6


def in_subnet(cidr, addr=None):
    network = ipaddress.ip_network(cidr, strict=False)
    addresses = [addr] if isinstance(addr, str) else addr or ip_addrs()
    return any(ipaddress.ip_address(one) in network for one in addresses)


def interfaces():
    return _host.call("network.interfaces")


def ip_addrs(interface=None, include_loopback=False, interface_data=None):
    return _host.call("network.ip_addrs", interface=interface, include_loopback=include_loopback)


ip4_addrs = ip_addrs


def ip_addrs6(interface=None, include_loopback=False, interface_data=None):
    return _host.call("network.ip_addrs6", interface=interface, include_loopback=include_loopback)


ip6_addrs = ip_addrs6


def subnets(interfaces=None):
    return _host.call("network.subnets")


def is_reachable_host(host):
    return bool(host_to_ips(host))


def sanitize_host(host, underscore_ok=False):
    return "".join(char for char in host if char.isalnum() or char in ".-" + ("_" if underscore_ok else ""))


def is_loopback(ip):
    return ipaddress.ip_address(ip).is_loopback


def is_private(ip):
    return ipaddress.ip_address(ip).is_private
