"""Becomes a program that ends, by TERM, with the thread that started it.

    python -I -S _exec_with_parent.py PARENT PROGRAM [ARGUMENT...]

Linux alone. PARENT is the process of that thread. A separate program, since
nothing but exec is safe in a child of a process that has threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # see prctl(2); outlives exec


def main() -> None:
    parent, program = int(sys.argv[1]), sys.argv[2]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"cannot start {program}: prctl(PR_SET_PDEATHSIG): "
                 f"{os.strerror(ctypes.get_errno())}; without it {program} "
                 "would outlive this process")
    if os.getppid() != parent:  # it ended before it could be asked
        sys.exit(f"process {parent}, which started {program}, is gone")
    try:
        os.execv(program, sys.argv[2:])
    except OSError as error:
        sys.exit(f"cannot start {program}: {error.strerror}")


if __name__ == "__main__":
    main()
