"""The programs encoderd and encoderctl, in a wheel that carries them.

A package apart from `encoderd`: its commands start without gRPC and numpy. In
the client alone it is missing. deploy/wheel.sh fills bin/ and licenses/.
"""

import os
import pathlib
import sys
from typing import NoReturn


def path(name: str) -> str:
    """Where the program is."""
    return str(pathlib.Path(__file__).resolve().parent / "bin" / name)


def encoderd() -> NoReturn:
    """The command encoderd: becomes the server."""
    _become("encoderd")


def encoderctl() -> NoReturn:
    """The command encoderctl."""
    _become("encoderctl")


def _become(name: str) -> NoReturn:
    os.execv(path(name), [name, *sys.argv[1:]])
