"""What a client that was made before a fork does in the forked process: an
error that says so, and never a wait without end."""

import os
import signal

import encoderd
import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"),
                       reason="no processes of this kind"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # with threads


def in_fork(what):
    """Whether `what` returned True there, in less than a minute."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if what() is True else 2
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def is_refused(call):
    try:
        call()
    except RuntimeError as error:
        return "before a fork" in str(error)
    return False


def endless():
    while True:
        yield "one"


def test_it_is_told_to_make_another_client(fake):
    with encoderd.Client(fake.target) as client:
        one = client.encode("one")
        assert in_fork(lambda: is_refused(lambda: client.encode("one")))
        assert in_fork(
            lambda: is_refused(lambda: next(client.embed_stream(["one"]))))
        assert (client.encode("one") == one).all()


def test_a_stream_that_was_made_and_not_begun_is_refused(fake):
    with encoderd.Client(fake.target) as client:
        stream = client.embed_stream(["one"])
        assert in_fork(lambda: is_refused(lambda: next(stream)))
        assert next(stream).vector is not None


def test_a_stream_continues_in_the_parent_alone(fake):
    with encoderd.Client(fake.target) as client:
        stream = client.embed_stream(endless())
        first = next(stream)

        def rest():
            for _ in range(100_000):  # what the parent had taken is given
                next(stream)

        assert in_fork(lambda: is_refused(rest))
        assert (next(stream).vector == first.vector).all()


def test_closing_there_returns_and_leaves_the_parent_its_connection(fake):
    with encoderd.Client(fake.target) as client:
        stream = client.embed_stream(endless())
        first = next(stream)

        def close():
            stream.close()
            client.close()
            return True

        assert in_fork(close)
        assert (next(stream).vector == first.vector).all()
        assert client.encode("one").shape == first.vector.shape
