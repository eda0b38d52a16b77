"""What fails in gRPC or inside the clients, through no fault of the caller, is
raised as it is; so is Ctrl-C."""

import operator
import threading
import traceback

import encoderd
import grpc
import pytest
from either_client import KINDS, ask
from encoderd import _method_jobs, _run_blocking
from encoderd._channel import encoder_pb2_grpc
from python_service import Model, serve
from stream_service import PATIENCE, awaited, blocking


class Refusing:
    """In place of EncoderStub, and of each of its methods."""

    error = ValueError

    def __init__(self, channel):
        pass

    def __getattr__(self, name):
        return self

    def __call__(self, *arguments, **options):
        raise self.error("gRPC takes no such call")

    future = __call__


@pytest.mark.parametrize("error", [ValueError, grpc.aio.UsageError])
def test_an_error_of_grpc_is_not_taken_for_a_closed_client(gone, monkeypatch,
                                                           error):
    monkeypatch.setattr(encoder_pb2_grpc, "EncoderStub", Refusing)
    monkeypatch.setattr(Refusing, "error", error)
    for ask_one in (blocking, awaited):
        with pytest.raises(error, match="gRPC takes no such call"):
            ask_one(gone, ["one"])


@KINDS
def test_an_error_of_grpc_is_not_taken_for_a_closed_client_by_a_call(
        gone, monkeypatch, kind):
    monkeypatch.setattr(encoder_pb2_grpc, "EncoderStub", Refusing)
    with pytest.raises(ValueError, match="gRPC takes no such call"):
        ask(kind, gone, "encode", "one")


@KINDS
def test_a_fault_of_the_package_shows_its_frames_and_cause(fake, monkeypatch,
                                                           kind):
    # A TypeError from C, whose functions have no frames.
    monkeypatch.setattr(_method_jobs, "Rows", operator.index)
    with pytest.raises(TypeError) as caught:
        ask(kind, fake.target, "encode", "one")
    assert traceback.extract_tb(caught.tb)[-1].name == "embed"
    assert not caught.value.__suppress_context__


@KINDS
def test_a_wrong_argument_in_a_callers_generator_shows_where(fake, kind):
    def texts():
        yield from ask(encoderd.Client, fake.target, "encode", [None])

    with pytest.raises(TypeError, match=r"inputs\[0\] is None") as caught:
        ask(kind, fake.target, "encode", texts())
    assert "texts" in [frame.name for frame in traceback.extract_tb(caught.tb)]


@KINDS
@pytest.mark.parametrize("method", ["encode", "token_states", "embed"])
def test_an_error_of_encoderd_in_a_callers_generator_shows_where(fake, kind,
                                                                 method):
    def texts():
        try:
            yield from ask(encoderd.Client, fake.target, "encode", [""])
        except encoderd.EncoderdError as error:
            raise error from LookupError("of the caller")

    with pytest.raises(encoderd.InvalidInputError) as caught:
        ask(kind, fake.target, method, texts())
    assert "texts" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert isinstance(caught.value.__cause__, LookupError)


@KINDS
def test_an_error_of_encoderd_shows_no_frames_within_the_package(fake, kind):
    with pytest.raises(encoderd.InvalidInputError) as caught:
        ask(kind, fake.target, "encode", ["one", ""])
    assert traceback.extract_tb(caught.tb)[-1].name == "_run"


@KINDS
@pytest.mark.parametrize("use", [
    lambda client: client.embed_stream(["one"], timeout="soon"),
    lambda client: encoderd.Client(timeout="soon")])
def test_so_does_one_of_a_stream_or_a_constructor(fake, kind, use):
    def texts():
        with encoderd.Client(fake.target) as client:
            yield from use(client)

    with pytest.raises(TypeError, match="timeout is a str") as caught:
        ask(kind, fake.target, "encode", texts())
    assert "texts" in [frame.name for frame in traceback.extract_tb(caught.tb)]


@KINDS
def test_a_wrong_argument_shows_no_frames_within_the_package(fake, kind):
    with pytest.raises(TypeError) as caught:
        ask(kind, fake.target, "encode", [None])
    assert traceback.extract_tb(caught.tb)[-1].name == "_run"


class Held(Model):
    """Answers no GetModel before its caller has ended it."""

    def __init__(self):
        super().__init__()
        self.called, self.ended = threading.Event(), threading.Event()

    def GetModel(self, request, context):
        if context.add_callback(self.ended.set):
            self.called.set()
            self.ended.wait()
        return self.info


def test_ctrl_c_ends_a_call_that_is_in_flight(monkeypatch):
    def interrupt(call, in_flight):
        assert service.called.wait(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr(_run_blocking.Call, "result", interrupt)
    with serve(Held()) as service, encoderd.Client(service.target) as client:
        with pytest.raises(KeyboardInterrupt):
            client.model()
        assert service.ended.wait(PATIENCE)
