"""What the adapters to other packages share."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any, Dict, Optional, Tuple, Union

from encoderd._option_checks import a_kind
from encoderd.client import Client


def client_of(given: Union[Client, str, None]) -> Client:
    """The client itself; or a new one, of a target (None: ENCODERD_TARGET,
    else localhost:8400)."""
    return given if isinstance(given, Client) else Client(given)


def one_text(value: Any) -> str:
    """The value; TypeError for what is no text, such as a list of texts."""
    if not isinstance(value, str):
        raise TypeError(f"text is {a_kind(value)}; expected a str")
    return value


def missing(module: str, package: str) -> ImportError:
    """Raised where an adapter's package is not installed."""
    extra = module.replace("_", "-")
    return ImportError(f"encoderd.{module} needs {package}: pip install "
                       f"'encoderd[{extra}]'")


def to_config(given: Union[Client, str, None], options: Dict[str, Any],
              dialed: bool = False) -> Dict[str, Any]:
    """What an adapter is stored as: target, model and options, and nothing
    secret. TLS and tokens are read from the environment where it is loaded.

    dialed: of a Client, the address that it dials; else what it was given,
        None where the environment names it.
    """
    # Arrays, such as ranges, as lists: JSON and YAML have them, and str() shows
    # every value.
    options = {name: value.tolist() if hasattr(value, "tolist") else value
               for name, value in options.items()}
    target: Optional[str] = None
    if isinstance(given, Client):
        target = (given._methods.link.target if dialed
                  else given._arguments["target"])
        options = {"model": given._arguments["model"], **options}
    else:
        target = given
    return {"target": target, "options": options}


class Remade:
    """Makes a stored or pickled adapter again by its constructor's arguments;
    LlamaIndex itself would call __init__ with every field by its name."""

    embed_batch_size: int
    options: Dict[str, Any]
    _client: Client

    @classmethod
    def from_dict(cls, data: Dict[str, Any], **changes: Any) -> Any:
        return _remake(cls, **{**data, **changes})

    def __reduce__(self) -> Tuple[Any, ...]:
        """With its client, pickled as any Client: a token in the clear. A cache
        that cannot be pickled stays behind."""
        fields = vars(self)  # older versions of LlamaIndex have fewer
        return _remake, (type(self), self._client, self.options,
                         self.embed_batch_size, fields.get("num_workers"),
                         _if_picklable(fields.get("embeddings_cache")))


def _if_picklable(value: Any) -> Any:
    try:
        ForkingPickler.dumps(value)  # as to another process
    except Exception:  # of any kind, as its class has it
        return None
    return value


def _remake(kind: Any, target: Union[Client, str], options: Dict[str, Any],
            embed_batch_size: int, num_workers: Optional[int] = None,
            embeddings_cache: Any = None, **_: Any) -> Any:
    made = kind(target, embed_batch_size=embed_batch_size, **options)
    for name, value in (("num_workers", num_workers),
                        ("embeddings_cache", embeddings_cache)):
        if value is not None:
            setattr(made, name, value)
    return made
