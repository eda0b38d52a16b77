"""What the adapters to other packages share."""

from __future__ import annotations

from typing import Any, Dict, Optional, Union

from encoderd.client import Client


def client_of(given: Union[Client, str, None]) -> Client:
    """The client itself; or a new one, of a target (None: ENCODERD_TARGET,
    else localhost:8400)."""
    return given if isinstance(given, Client) else Client(given)


def missing(module: str, package: str) -> ImportError:
    """Raised where an adapter's package is not installed."""
    extra = module.replace("_", "-")
    return ImportError(f"encoderd.{module} needs {package}: pip install "
                       f"'encoderd[{extra}]'")


def to_config(given: Union[Client, str, None], options: Dict[str, Any]
              ) -> Dict[str, Any]:
    """What an adapter is stored as: target, model and options, and nothing
    secret. TLS and tokens are read from the environment where it is loaded."""
    target: Optional[str] = None
    if isinstance(given, Client):
        target = given._arguments["target"]
        options = {"model": given._arguments["model"], **options}
    else:
        target = given
    return {"target": target, "options": options}
