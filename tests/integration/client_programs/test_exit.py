"""The blocking client: programs that end while calls are in flight."""

import pathlib
import subprocess
import sys

import pytest
from python_service import Held, serve
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


# Each ends while gRPC's thread that sends has the lock of the stream's call.
ENDS_WHILE_GRPC_SENDS = """
import atexit, itertools, sys, time
import slow_sender
atexit.register(time.sleep, 1)  # runs after what is registered later
import encoderd
client = encoderd.Client(sys.argv[1])
found = client.embed_stream(itertools.repeat("one"))
next(found)
time.sleep(1)  # until gRPC has sent all that may be in flight
"""
LEAVES_IT_OPEN = "atexit.register(slow_sender.LATE.set)"
CLOSES_IT = "slow_sender.LATE.set(); found.close(); time.sleep(0.25)"


@pytest.mark.parametrize("end", [LEAVES_IT_OPEN, CLOSES_IT])
def test_the_process_ends_after_grpcs_threads_of_a_stream(end, fake):
    # gRPC deletes a call that is kept when the threads have been stopped, and
    # waits for its lock without end if one of them still has it.
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_GRPC_SENDS + end, fake.target],
        timeout=PATIENCE, check=False, cwd=pathlib.Path(__file__).parent)
    assert ended.returncode == 0


CLOSES_THE_CLIENT = """
import sys, threading
import encoderd
def texts():
    with encoderd.Client(sys.argv[1]) as client:
        threading.Thread(target=client.embed, args=["text"], daemon=True).start()
        yield
found = texts()
next(found)
sys.stdin.readline()
"""


def test_a_client_closed_while_the_interpreter_ends_waits_for_no_call():
    with serve(Held()) as service, subprocess.Popen(
            [sys.executable, "-c", CLOSES_THE_CLIENT, service.target],
            stdin=subprocess.PIPE) as program:
        try:
            assert service.called.wait(PATIENCE)
            program.stdin.close()
            assert program.wait(PATIENCE) == 0
        finally:
            program.kill()
            service.let_go.set()
