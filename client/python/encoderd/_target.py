"""Which targets of gRPC are on this machine."""

from __future__ import annotations

import ipaddress

_LOCAL = ("unix:", "unix-abstract:")
_SCHEMES = ("dns:///", "dns:", "ipv4:", "ipv6:")


def _host(address: str) -> str:
    """Of "host", "host:port", "[host]:port" and a bare IPv6 address."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    if address.count(":") > 1:
        return address
    return address.partition(":")[0]


def _is_loopback_host(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.version == 4:
        return address.is_loopback
    return address == ipaddress.IPv6Address("::1")


def is_loopback(target: str) -> bool:
    """Whether nothing that is sent to it leaves this machine: a Unix socket,
    localhost, 127.0.0.0/8 and ::1, by the names that gRPC takes. What it
    cannot read is elsewhere."""
    if target.startswith(_LOCAL):
        return True
    for scheme in _SCHEMES:
        if target.startswith(scheme):
            target = target[len(scheme):]
            break
    return all(_is_loopback_host(_host(address))
               for address in target.split(","))
