"""What modules that know clouds ask of addresses."""

import ipaddress

_PRIVATE = [ipaddress.ip_network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8")]


def is_public_ip(ip):
    """Tells whether an address is in none of the private networks."""
    address = ipaddress.ip_address(ip)
    if address.version == 6:
        return not address.is_private
    return not any(address in net for net in _PRIVATE)
