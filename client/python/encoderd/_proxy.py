"""The HTTP proxy of the environment that gRPC dials through, for errors."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import Optional

from encoderd._target import hosts_of, is_loopback

_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")  # as gRPC reads them
_EXCEPTIONS = ("no_grpc_proxy", "no_proxy")
# With a password, perhaps, which is not shown.
_PROXY = re.compile(r"(?i)http://(?:[^/@]*@)?([^/?#]+)")


def _set_first(names: "tuple[str, ...]") -> Optional[str]:
    """The name of the first variable that is set, were it empty."""
    return next((name for name in names if name in os.environ), None)


def _is_exempt(host: str) -> bool:
    variable = _set_first(_EXCEPTIONS)
    for entry in os.environ.get(variable or "", "").split(","):
        entry = entry.strip().lower()
        if not entry:
            continue
        if host.lower().endswith(entry):
            return True
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, False):
                return True
        except ValueError:  # a name
            pass
    return False


def proxy_of(target: str) -> str:
    """"http_proxy=http://proxy:3128", the variable that has gRPC dial `target`
    through a proxy; empty where none does, as on this machine."""
    variable = _set_first(_VARIABLES)
    if variable is None or is_loopback(target):
        return ""
    found = _PROXY.match(os.environ[variable])
    if not found or _is_exempt(hosts_of(target)[0]):
        return ""
    return f"{variable}=http://{found[1]}"
