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


def remote_port_tcp(port):
    """The addresses this machine is connected to at that port of theirs."""
    return {remote for _, (remote, theirs) in _connections() if theirs == int(port)}


def local_port_tcp(port):
    """The addresses that are connected to that port of this machine."""
    return {remote for (_, ours), (remote, _) in _connections() if ours == int(port)}


def _connections():
    """Established TCP connections: own and other end."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name) as handle:
                lines = handle.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, remote, state = line.split()[:4]
            if state == "01":
                yield _end(local), _end(remote)


def _end(text):
    address, _, port = text.partition(":")
    # Words of four bytes in the machine's order.
    data = bytes.fromhex(address)
    data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    made = ipaddress.ip_address(data)
    return str(getattr(made, "ipv4_mapped", None) or made), int(port, 16)
