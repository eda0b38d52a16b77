"""Whether Grafana's own model of a dashboard holds ours: what it does not keep
in a round trip it does not know, and each value has the type that it says."""

import enum
import inspect
import json
import pathlib
import sys
import typing

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from lost_fields import lost_fields  # noqa: E402  after the path


def _encoded(model):
    return json.loads(JSONEncoder().encode(model))


def _fits(value, hint):
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return any(_fits(value, one) for one in of)
    if origin is typing.Literal:
        return value in of
    if origin is list:
        return isinstance(value, list) and all(_fits(v, of[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(v, of[1]) for v in value.values())
    if hint in (typing.Any, object):
        return True
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return value in {one.value for one in hint} | set(hint)
    if hint is float:
        return type(value) in (int, float)
    if hint in (int, str, bool):
        return type(value) is hint
    if isinstance(value, dict) and hasattr(hint, "from_json"):
        return not lost_fields(value, _encoded(hint.from_json(value)), "")
    return isinstance(value, hint) if inspect.isclass(hint) else True


def _mistyped(value, path):
    if isinstance(value, (list, dict)):
        items = (value.items() if isinstance(value, dict)
                 else enumerate(value))
        return [f for key, one in items for f in _mistyped(one, f"{path}.{key}")]
    if not type(value).__module__.startswith("grafana_foundation_sdk"):
        return []
    if isinstance(value, enum.Enum):
        return []
    found = []
    for name, hint in typing.get_type_hints(type(value)).items():
        part = getattr(value, name)
        if not _fits(part, typing.Optional[hint]):
            found.append(f"{path}.{name} is {part!r}, no {hint}")
        found += _mistyped(part, f"{path}.{name}")
    return found


def findings(dashboard):
    register_default_plugins()
    model = Dashboard.from_json(dashboard)
    return (lost_fields(dashboard, _encoded(model), "dashboard")
            + _mistyped(model, "dashboard"))
