"""Targets: what a caller names as the server's address, and how gRPC wants it.

A target without a port gets 8400, also behind dns:, ipv4: and ipv6:. The C++
client has the same rules (tests/support/targets.txt). What cannot be an address
is a ValueError that names the target, the fault and an address of the right
form; gRPC itself would dial another port (99999 becomes 34463) or fail without
saying why.
"""

from __future__ import annotations

import ipaddress
import os
import re
from typing import List, Optional

from encoderd._option_checks import a_kind

DEFAULT_PORT = 8400
DEFAULT_TARGET = f"localhost:{DEFAULT_PORT}"

_LOCAL = ("unix:", "unix-abstract:")
_LISTS = ("ipv4:///", "ipv6:///", "ipv4:", "ipv6:")  # of addresses
_HERE = ("dns:///", "ipv4:///", "ipv6:///")  # without another resolver
# What precedes the addresses, such as dns:, ipv4:/// and dns://RESOLVER/.
_SCHEME = re.compile(r"(?a)[A-Za-z][\w+.-]*://[^/]*/|(?:dns|ipv4|ipv6|xds):")
# What gRPC resolves by its own rules, or a plugin's: taken as it is.
_OTHER = re.compile(
    r"(?a)[A-Za-z][\w+.-]*://|unix:|unix-abstract:|vsock:|xds:")
_URL = re.compile(r"(?i)(https?|grpcs?|h2c?|tcp|tls)://")


def read_target(given: Optional[str]) -> str:
    """The target to dial: `given`; None: of ENCODERD_TARGET, if it is set and
    not empty, else localhost:8400."""
    name = "target"
    if given is None:
        name = "ENCODERD_TARGET"
        given = os.environ.get(name, "") or DEFAULT_TARGET
    if not isinstance(given, str):
        raise TypeError(f"{name} is {a_kind(given)}; expected a str such as "
                        f"\"{DEFAULT_TARGET}\"")
    url = _URL.match(given)
    if url:
        rest = given[url.end():].split("/")[0]
        encrypted = url[1].lower() in ("https", "grpcs", "tls")
        raise _error(name, given, "a target has no "
                     f"{url[0]}; pass \"{rest or DEFAULT_TARGET}\""
                     + (" and tls=True" if encrypted else ""))
    if re.search(r"[\s\x00-\x1f\x7f]", given):
        raise _no_address(name, given, "an address has no blanks")
    if not given:
        raise _no_address(name, given, "it is empty")
    if given.startswith("dns:"):  # dns:host, dns:///host, dns://resolver/host
        at = given.find("/", 6) if given.startswith("dns://") else 3
        if at < 0:
            raise _error(name, given, "no host after the resolver; expected "
                         "dns:///HOST:PORT")
        return given[:at + 1] + _with_port(name, given, given[at + 1:])
    for scheme in _LISTS:
        if given.startswith(scheme):
            return scheme + ",".join(
                _with_port(name, given, address)
                for address in given[len(scheme):].split(","))
    if _OTHER.match(given):
        return given
    return _with_port(name, given, given)


def _error(name: str, target: str, fault: str) -> ValueError:
    return ValueError(f"{name} is {target!r}: {fault}")


def _no_address(name: str, target: str, why: str) -> ValueError:
    return _error(name, target, f"{why}; expected HOST:PORT, such as "
                  f"\"{DEFAULT_TARGET}\"")


def _with_port(name: str, target: str, address: str) -> str:
    """One address of a target as host:port or [host]:port."""
    foreign = re.search(r"[/?#@,]", address)
    if foreign:
        raise _no_address(name, target, f"an address has no {foreign[0]!r}")
    if not address:
        raise _no_address(name, target, "the host is missing")
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _error(name, target, "expected [ADDRESS]:PORT, such as "
                         f"\"[::1]:{DEFAULT_PORT}\"")
        host, port = f"[{host}]", rest[1:] if rest else None
    elif address.count(":") > 1:  # IPv6 without brackets: no port
        host, port = f"[{address}]", None
    else:
        host, colon, rest = address.partition(":")
        port = rest if colon else None
    if port is None and host.isdigit():
        raise _error(name, target, "that is a port without a host; pass "
                     f"\"localhost:{host}\"")
    if host in ("", "[]"):
        raise _error(name, target, "no host before the port; pass "
                     f"\"localhost:{port or DEFAULT_PORT}\"")
    if port is None:
        return f"{host}:{DEFAULT_PORT}"
    if not (port.isascii() and port.isdigit()):
        raise _error(name, target, f"{port!r} is not a port; expected a "
                     "number from 1 to 65535 after the colon")
    if not 1 <= int(port) <= 65535:
        raise _error(name, target, f"port {port} is out of range; expected 1 "
                     f"to 65535, such as \"{host}:{DEFAULT_PORT}\"")
    return address


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


def hosts_of(target: str) -> List[str]:
    """Of a target that read_target gave, without schemes, ports and brackets;
    several of a list of addresses."""
    scheme = _SCHEME.match(target)
    return [_host(address) for address in
            target[scheme.end() if scheme else 0:].split(",")]


def is_localhost(target: str) -> bool:
    """Whether it is the name localhost, which may have two addresses: ::1,
    127.0.0.1."""
    if _OTHER.match(target) and not target.startswith(_HERE):
        return False
    return [host.lower() for host in hosts_of(target)] == ["localhost"]


def is_loopback(target: str) -> bool:
    """Whether nothing that is sent to it leaves this machine: a Unix socket,
    localhost, 127.0.0.0/8 and ::1, by the names that gRPC takes. What it
    cannot read is elsewhere."""
    if target.startswith(_LOCAL):
        return True
    if _OTHER.match(target) and not target.startswith(_HERE):
        return False
    return all(map(_is_loopback_host, hosts_of(target)))
