"""Server starts the program encoderd on this machine.

The program is the one that this package carries (the wheel for Linux), or
`encoderd` on the PATH. It ends with the Server object, and at the latest with
the process that made it, however that process ends, unless that is a frozen
program and is killed.
"""

from __future__ import annotations

import importlib
import os
import shutil
import weakref
from types import TracebackType
from typing import Any, List, Mapping, Optional, Type, Union

from encoderd._option_checks import a_kind, is_hub_name, seconds
from encoderd._server_process import ServerProcess, ServerStartError
from encoderd.async_client import AsyncClient
from encoderd.client import Client

Path = Union[str, "os.PathLike[str]"]


class Server:
    """A running encoderd with a client at hand.

        with encoderd.Server(model="path/to/all-MiniLM-L6-v2") as server:
            vectors = server.client().encode(["first text", "second text"])

    Serves from its construction to stop(), to the end of `with`, until nothing
    refers to it or to a client of it any more, or to the end of this process.
    Its methods may be called from any thread. In a forked process it can be
    used and not stopped.

    target, http_target: where it listens, as host:port; http_target is "" where
        http_listen="" asked for no HTTP.
    """

    def __init__(self, model: Union[Path, Mapping[str, Path]], *,
                 program: Optional[Path] = None,
                 start_timeout: Optional[float] = 300.0,
                 stop_timeout: Optional[float] = 45.0, **flags: object):
        """Returns once every model is served; until then it blocks.

        model: the folder of a model, or several by their names; the first is
            the default.
        program: the server, where it is not the one of this package or on the
            PATH.
        start_timeout: seconds to wait for it; None: no limit.
        stop_timeout: seconds that stop() waits before it kills; at least
            --drain_delay and --drain_timeout (30) together; None: no limit.
        flags: the server's flags by their names: dtype="bf16", threads=2,
            reflection=True; `encoderd --help` lists them. It listens on free
            ports of 127.0.0.1 unless listen and http_listen say otherwise.

        Raises ServerStartError with the server's message if it cannot start,
        or does not in time; ValueError for a model or flag that cannot be an
        argument of a program, such as one with a NUL; TypeError or ValueError
        for a timeout that is not a number of seconds above 0.
        """
        start_limit = seconds("start_timeout", start_timeout)
        self._stop_timeout = seconds("stop_timeout", stop_timeout)
        wanted = {"listen": "127.0.0.1:0", "http_listen": "127.0.0.1:0",
                  **flags}
        self._encrypted = bool(wanted.get("tls_certificate_file"))
        self._may_ask_for_token = any(map(wanted.get, (
            "bearer_token_file", "flagfile", "fromenv", "tryfromenv")))
        path, models = find_program(program), _model_flags(model)
        self._process = ServerProcess(
            [path, *models,
             *(f"--{name}={_text(value)}" for name, value in wanted.items())])
        # Also when this object is dropped, or the interpreter ends.
        self._finalizer = weakref.finalize(self, self._process.stop,
                                           self._stop_timeout)
        try:
            self._process.wait_until_serving(start_limit)
        except BaseException:
            self.stop()
            raise
        self.target = _reachable(self._process.grpc)
        self.http_target = _reachable(self._process.http)

    def client(self, **options: Any) -> Client:
        """A new Client of this server; `options` are those of Client."""
        client = Client(self.target, **self._client_options(options))
        client._server = self  # lives as long
        return client

    def async_client(self, **options: Any) -> AsyncClient:
        """A new AsyncClient of this server, likewise."""
        client = AsyncClient(self.target, **self._client_options(options))
        client._server = self
        return client

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @property
    def exit_code(self) -> Optional[int]:
        """None while it runs; -N where signal N ended it."""
        return self._process.exit_code

    @property
    def log(self) -> str:
        """The last 1000 lines of its log."""
        return self._process.log

    def stop(self) -> Optional[int]:
        """Ends it by TERM: what it accepted is answered first.

        Kills it after stop_timeout. Returns the exit code, 0 where all went
        well; the same again once it has ended; None in a forked process.
        """
        return self._process.stop(self._stop_timeout)

    def __repr__(self) -> str:
        """With its address and process."""
        ended = ("" if self.exit_code is None
                 else f", ended with {self.exit_code}")
        at = getattr(self, "target", "no address yet")
        return f"<encoderd.Server at {at}, process {self.pid}{ended}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Server cannot be copied or pickled: it is a process "
                        "of this machine; hand on its target, or a client of "
                        "it")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()

    def _client_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        # Variables such as ENCODERD_TOKEN are about other servers.
        if options.get("credentials") is not None:
            return options
        if not self._may_ask_for_token and options.get("token_file") is None:
            options = {**options, "token_file": ""}  # none
        if self._encrypted:
            return options
        for name in ("ca_file", "certificate_file", "key_file", "server_name"):
            if options.get(name) is not None and "tls" not in options:
                raise ValueError(
                    f"{name} is for TLS, which this server does not have; drop "
                    "it, or start the server with tls_certificate_file= and "
                    "tls_key_file=")
        return {"tls": False, **options}


def find_program(program: Optional[Path] = None,
                 otherwise: str = "name the server: Server(..., program=PATH)"
                 ) -> str:
    """The server's path: `program`, this package's, or that on the PATH.
    otherwise: what a caller can do where there is none."""
    if program is not None:
        found = os.path.expanduser(os.fspath(program))
        if not os.access(found, os.X_OK) or os.path.isdir(found):
            raise ServerStartError(f"program {found} is not an executable "
                                   "file")
        return found
    try:
        path = importlib.import_module("encoderd_programs").path
    except ModuleNotFoundError:
        on_path = shutil.which("encoderd")
        if on_path:
            return on_path
        raise ServerStartError(
            "this installation of the Python package encoderd contains only "
            "the client, and no program encoderd is on the PATH; install the "
            "wheel for Linux (deploy/wheel.sh builds it) or the .deb, or "
            f"{otherwise}") from None
    return str(path("encoderd"))


def _model_flags(model: Union[Path, Mapping[str, Path]]) -> List[str]:
    if isinstance(model, Mapping):
        if not model:
            raise ValueError("model is an empty dict; expected a folder, or a "
                             "dict from names to folders")
        return [f"--model={name}={_folder(f'model[{name!r}]', folder)}"
                for name, folder in model.items()]
    return [f"--model={_folder('model', model)}"]


def _folder(name: str, given: Path) -> str:
    """ServerStartError for what is a name on the Hub, and no folder here."""
    if not isinstance(given, (str, os.PathLike)):
        also = (", or a dict from names to folders" if name == "model" else "")
        raise TypeError(f"{name} is {a_kind(given)}; expected the folder of a "
                        f"model{also}")
    folder = os.path.expanduser(os.fspath(given))
    if is_hub_name(folder) and not os.path.exists(folder):
        raise ServerStartError(
            f"{name} is {folder!r}: no such folder. If it is a name on the "
            "Hugging Face Hub, download it first (pip install "
            "huggingface_hub) and pass the folder: "
            f"huggingface_hub.snapshot_download({folder!r})")
    return folder


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _reachable(address: str) -> str:
    """A server on all addresses is called on this machine's own."""
    host, _, port = address.rpartition(":")
    return {"0.0.0.0": f"127.0.0.1:{port}",
            "[::]": f"[::1]:{port}"}.get(host, address)
