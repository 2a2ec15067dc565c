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


def sanitize_host(host):
    return "".join(char for char in host if char.isalnum() or char in ".-")


def _network(cidr, version=None):
    try:
        found = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return None
    return found if version in (None, found.version) else None


def is_ipv4_subnet(cidr):
    return "/" in str(cidr) and _network(cidr, 4) is not None


def is_ipv6_subnet(cidr):
    return "/" in str(cidr) and _network(cidr, 6) is not None


def is_subnet(cidr):
    return is_ipv4_subnet(cidr) or is_ipv6_subnet(cidr)


def calc_net(ip_addr, netmask=None):
    """The network an address is in."""
    whole = ip_addr if netmask is None else "{}/{}".format(ip_addr, netmask)
    return str(ipaddress.ip_network(whole, strict=False))


def cidr_to_ipv4_netmask(cidr_bits):
    try:
        bits = int(cidr_bits)
    except (TypeError, ValueError):
        return ""
    return str(ipaddress.ip_network("0.0.0.0/{}".format(bits)).netmask) if 1 <= bits <= 32 else ""


def get_net_size(mask):
    return len("".join("{:08b}".format(int(part)) for part in mask.split(".")).rstrip("0"))


def get_net_start(ipaddr, netmask):
    return str(ipaddress.ip_network("{}/{}".format(ipaddr, netmask), strict=False).network_address)


def natural_ipv4_netmask(ip, fmt="prefixlen"):
    """The mask of an address by the classes of old."""
    first = int(ip.split(".")[0])
    bits = 8 if first < 128 else 16 if first < 192 else 24
    return cidr_to_ipv4_netmask(bits) if fmt == "netmask" else "/{}".format(bits)


def rpad_ipv4_network(ip):
    parts = ip.split(".")
    return ".".join(parts + ["0"] * (4 - len(parts)))


def parse_host_port(host_port):
    """`host:port` in two; the port is None if there is none."""
    text = host_port.strip()
    if text.startswith("["):
        host, _, rest = text[1:].rpartition("]")
        if not host:
            raise ValueError('"host:port" string "{}" is not valid'.format(text))
        port = rest[1:] if rest.startswith(":") else None
    elif text.count(":") == 1:
        host, port = text.split(":")
    else:
        host, port = text, None
    if port is not None:
        if not port.isdigit():
            raise ValueError('host_port "{}" port value "{}" is not an integer.'.format(text, port))
        port = int(port)
    return host, port


def ip_bracket(addr, strip=False):
    """An address as it stands in a URL."""
    bare = str(ipaddress.ip_address(str(addr).strip("[]")))
    return "[{}]".format(bare) if ":" in bare and not strip else bare


def mac_str_to_bytes(mac_str):
    if len(mac_str) == 17:
        mac_str = mac_str.replace(mac_str[2], "")
    elif len(mac_str) != 12:
        raise ValueError("Invalid MAC address")
    return bytes.fromhex(mac_str)


def mac2eui64(mac, prefix=None):
    """The second half of an IPv6 address, or all of it, that a MAC address makes."""
    digits = "".join(char for char in mac if char not in ".:-").lower()
    made = "{:02x}{}fffe{}".format(int(digits[:2], 16) ^ 2, digits[2:6], digits[6:])
    if prefix is None:
        return ":".join(made[at : at + 4] for at in range(0, 16, 4))
    try:
        net = ipaddress.ip_network(prefix, strict=False)
        return "{}/{}".format(net[int(made, 16)], net.prefixlen)
    except (ValueError, IndexError):
        return None


def gen_mac(prefix="AC:DE:48"):
    import random

    return "{}:{:02X}:{:02X}:{:02X}".format(prefix, *(random.randint(0, 0xFF) for _ in range(3)))


def network_hosts(value, options=None, version=None):
    net = _network(value, version)
    return [str(host) for host in net.hosts()] if net is not None else None


def network_size(value, options=None, version=None):
    net = _network(value, version)
    return net.num_addresses if net is not None else None


def filter_by_networks(values, networks):
    """Those of the addresses that are in one of the networks."""
    if values is None or networks is None:
        return values
    nets = [ipaddress.ip_network(net) for net in networks]

    def inside(addresses):
        return [one for one in addresses if any(ipaddress.ip_address(one) in net for net in nets)]

    if isinstance(values, dict):
        return {name: inside(addresses) for name, addresses in values.items()}
    if isinstance(values, (list, tuple)):
        return inside(values)
    raise ValueError("Do not know how to filter a {}".format(type(values)))


def _addresses(value, version=None):
    if isinstance(value, (list, tuple, set)):
        return [one for one in (_addresses(each, version) for each in value) if one]
    try:
        found = ipaddress.ip_interface(value) if "/" in str(value) else ipaddress.ip_address(value)
    except ValueError:
        return None
    return str(found) if version in (None, found.version) else None


def ipaddr(value, options=None):
    return _addresses(value)


def ipv4(value, options=None):
    return _addresses(value, 4)


def ipv6(value, options=None):
    return _addresses(value, 6)


def hex2ip(hex_ip, invert=False):
    """An address as the files of /proc/net have it."""
    data = bytes.fromhex(hex_ip)
    if invert:
        data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    made = ipaddress.ip_address(data)
    return str(getattr(made, "ipv4_mapped", None) or made)


def isportopen(host, port):
    """0 where something listens; else an error number, or False if that is no port."""
    if not 1 <= int(port) <= 65535:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        return sock.connect_ex((sanitize_host(host), int(port)))


def ip_to_host(ip):
    try:
        return socket.gethostbyaddr(ip)[0]
    except OSError:
        return None


def hw_addr(iface):
    """The MAC address of an interface."""
    found = interfaces().get(iface)
    if found is None:
        return 'Interface "{}" not in available interfaces: "{}"'.format(iface, '", "'.join(interfaces()))
    return found.get("hwaddr", "")


def interface(iface):
    found = interfaces().get(iface)
    if found is None:
        return 'Interface "{}" not in available interfaces: "{}"'.format(iface, '", "'.join(interfaces()))
    return found.get("inet")


def interface_ip(iface):
    found = interface(iface)
    if isinstance(found, str):
        return found
    return found[0].get("address", "") if found else ""


def subnets6(interfaces=None):
    return _host.call("network.subnets6")


def active_tcp():
    """Established connections, numbered."""
    return {
        number: {
            "local_addr": local[0], "local_port": str(local[1]),
            "remote_addr": remote[0], "remote_port": str(remote[1]),
        }
        for number, (local, remote) in enumerate(_connections())
    }


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
