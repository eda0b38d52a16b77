"""embed_stream() of the blocking client: programs that end while its iterator
is not at its end."""

import pathlib
import subprocess
import sys

from stream_service import PATIENCE

LEAVES_AN_ITERATOR = """
import atexit, itertools, os, sys, threading
from grpc import _channel

def check(exit=os._exit, threads=threading.enumerate):
    if any(thread.name == "encoderd-stream" for thread in threads()):
        exit(3)

def cancel(call, exit=os._exit, ends=sys.is_finalizing,
           cancel=_channel._MultiThreadedRendezvous.cancel):
    return exit(4) if ends() else cancel(call)

atexit.register(check)  # runs after what is registered later
_channel._MultiThreadedRendezvous.cancel = cancel
import encoderd
client = encoderd.Client(sys.argv[1])
found = client.embed_stream(itertools.repeat("one"))
next(found)
"""


def test_an_iterator_that_is_left_does_not_keep_the_process(fake):
    # A cancel while the interpreter ends waits for a lock that a stopped
    # thread may hold: sometimes without end.
    ended = subprocess.run([sys.executable, "-c", LEAVES_AN_ITERATOR,
                            fake.target], timeout=PATIENCE, check=False)
    assert ended.returncode == 0


ENDS_WHILE_GRPC_SENDS = """
import atexit, itertools, sys, time
import slow_sender
atexit.register(time.sleep, 1)  # runs after what is registered later
import encoderd
atexit.register(slow_sender.LATE.set)
client = encoderd.Client(sys.argv[1])
found = client.embed_stream(itertools.repeat("one"))
next(found)
time.sleep(1)  # until gRPC has sent all that may be in flight
"""


def test_the_process_ends_after_grpcs_threads_of_a_stream(fake):
    # gRPC deletes the call of `found` when the threads have been stopped, and
    # waits for its lock without end if one of them still has it.
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_GRPC_SENDS, fake.target],
        timeout=PATIENCE, check=False, cwd=pathlib.Path(__file__).parent)
    assert ended.returncode == 0
