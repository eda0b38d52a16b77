"""python -m encoderd serve MODEL: this package's server in the foreground."""

from __future__ import annotations

import os
import sys
from typing import List

from encoderd import __version__
from encoderd._server_process import ServerStartError
from encoderd.server import find_program

USAGE = """\
usage: python -m encoderd serve MODEL [MODEL...] [--flag=value...]
       python -m encoderd --version

Serves each MODEL (a folder, or name=folder) over gRPC on 127.0.0.1:8400 until
Ctrl-C; the first is the default. The flags are those of the program encoderd:
python -m encoderd serve --help lists them."""


def main(arguments: List[str]) -> None:
    if arguments in (["-h"], ["--help"]):
        print(USAGE)
        return
    if arguments == ["--version"]:
        print(f"encoderd {__version__}")
        return
    if arguments[:1] != ["serve"] or len(arguments) == 1:
        sys.exit(USAGE)
    models, flags = arguments[1:], []
    for place, word in enumerate(arguments[1:]):
        if word.startswith("-"):
            models, flags = arguments[1:1 + place], arguments[1 + place:]
            break
    try:
        program = find_program(
            otherwise="add the folder of a built encoderd to the PATH")
    except ServerStartError as error:
        sys.exit(f"encoderd: {error}")
    if {"-h", "--help"} & set(flags):
        os.execv(program, ["encoderd", "--help"])
    os.execv(program, ["encoderd", *(f"--model={model}" for model in models),
                       *flags])


if __name__ == "__main__":
    main(sys.argv[1:])
