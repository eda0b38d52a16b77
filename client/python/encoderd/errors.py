"""What can go wrong, with the server's own words and numbers."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from encoderd._argument_names import name_arguments
from encoderd._connection_errors import BYPASS, Link, explain_connection


class EncoderdError(Exception):
    """An error that the server returned, or that kept it from answering.

    code: the gRPC status code.
    message: the server's message, with options by their arguments' names. It
        names the thing, the value and the limit.
    reason: the stable name of the error, e.g. "INPUT_TOO_LONG" (ErrorReason
        in encoder.proto); empty if gRPC itself failed, e.g. no connection.
    metadata: every number in the message as text, e.g. metadata["limit"].
    violations: (field, description) of each field of the request to blame,
        with an option by its argument's name. The server lists a limited
        number: if there are more, the last entry has an empty field and says
        how many ("and 24 more"), as does metadata["omitted_violations"].
    retry_delay: seconds after which a retry may succeed, or None.
    remedy: what the caller can do, as str() says after the message; empty if
        nothing is known.
    input_index: place of the bad input in the caller's list, or None.
    """

    def __init__(self, code: grpc.StatusCode, message: str, reason: str = "",
                 metadata: Optional[Dict[str, str]] = None,
                 violations: Optional[List[Tuple[str, str]]] = None,
                 retry_delay: Optional[float] = None, remedy: str = ""):
        self.code = code
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        self.violations = violations or []
        self.retry_delay = retry_delay
        self.remedy = remedy
        index = self.metadata.get("input_index", "")
        self.input_index = int(index) if index.isdecimal() else None
        super().__init__(code, message)

    def __str__(self) -> str:
        """Code, reason, message and remedy, in one line."""
        name = self.code.name + (f" ({self.reason})" if self.reason else "")
        return f"{name}: {self.message}" + (f"; {self.remedy}" if self.remedy
                                            else "")

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickled and copied whole: worker processes hand errors over so."""
        return (type(self), (self.code, self.message, self.reason,
                             self.metadata, self.violations,
                             self.retry_delay, self.remedy), self.__dict__)


class InvalidInputError(EncoderdError):
    """INVALID_ARGUMENT: change the request; see input_index."""


class InputTooLongError(InvalidInputError):
    """INPUT_TOO_LONG: an input has more tokens than the model takes. truncate=
    and, for vectors, windows= accept it."""

    @property
    def token_count(self) -> int:
        """Tokens of the input, special tokens and a prompt included."""
        return int(self.metadata["token_count"])

    @property
    def max_tokens(self) -> int:
        """The most tokens that the model takes."""
        return int(self.metadata["max_tokens"])


class NotFoundError(EncoderdError):
    """NOT_FOUND: no such model or prompt."""


class UnauthenticatedError(EncoderdError):
    """UNAUTHENTICATED: the server requires a token (BEARER_TOKEN_MISSING) or
    does not know this one (BEARER_TOKEN_UNKNOWN)."""


class QueueFullError(EncoderdError):
    """RESOURCE_EXHAUSTED: the server was busy at every attempt; retry later. A
    message that is too large is an InvalidInputError (REQUEST_TOO_LARGE)."""


class UnavailableError(EncoderdError):
    """UNAVAILABLE: no connection, or the server is loading or shutting down.
    The message names the address and the cause; gRPC's own words are in
    metadata["grpc_message"]."""


class DeadlineExceededError(EncoderdError):
    """DEADLINE_EXCEEDED: a call took longer than the client's timeout or the
    method's own timeout=, embed_stream() had no answer for so long, or, with
    reason EXPIRED_IN_QUEUE, a request waited in the server's queue for longer
    than that or --max_queue_time."""


class ServerFaultError(EncoderdError):
    """INTERNAL: the server failed; metadata["error_id"] is in its log, unless
    very many calls failed at once."""


_BY_CODE: Dict[grpc.StatusCode, Type[EncoderdError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInputError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: QueueFullError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.INTERNAL: ServerFaultError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
}
TOO_LARGE = "REQUEST_TOO_LARGE"
DRAINING = "DRAINING"
TOO_MANY = "TOO_MANY_INPUTS"
_LONGER = "raise timeout="
_CUT = 'pass truncate="end" to cut it'
_WITH_PROMPT = ", the prompt's tokens included"
_REMEDIES = {
    "EMPTY_INPUT": 'drop it, or keep its row: on_error="per_input"',
    "QUEUE_FULL": "retry later, or with a longer timeout=",
    DRAINING: "retry: the restarted server, or its replacement, will answer",
    "BEARER_TOKEN_MISSING": "pass token= or token_file= (or ENCODERD_TOKEN, "
                            "ENCODERD_TOKEN_FILE)",
    "BEARER_TOKEN_UNKNOWN": "pass one that the server has "
                            "(--bearer_token_file)",
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_INPUTS = re.compile(r"\binputs\[(\d+)\]")
# gRPC's words, in every language: bytes of the message, and of its limit.
_LARGER = re.compile(r"(sent|received) message larger than max "
                     r"\((\d+) vs\.? (\d+)\)", re.IGNORECASE)


def _place(index: str, places: Sequence[int]) -> int:
    """The place of an input of a request in the caller's list."""
    at = int(index)
    return places[at] if at < len(places) else at


def _move(text: str, places: Sequence[int]) -> str:
    """Makes each "inputs[i]" of a request count in the caller's list."""
    return _INPUTS.sub(lambda m: f"inputs[{_place(m[1], places)}]", text)


def make_error(code: grpc.StatusCode, message: str, reason: str = "",
               **rest: Any) -> EncoderdError:
    """The subclass that fits code and reason."""
    kind = _BY_CODE.get(code, EncoderdError)
    if reason == "INPUT_TOO_LONG":
        kind = InputTooLongError
    rest.setdefault("remedy", _REMEDIES.get(reason, ""))
    return kind(code, message, reason, **rest)


# What the server advises where an input is too long, by the names of the
# contract's fields; `remedy` says it by those of this package.
_ADVICE = re.compile(r": (?:split|shorten) it[,;] .*", re.DOTALL)


def _remedy_of_too_long(field: str, windows: bool) -> str:
    """field: of the request, to blame; windows: whether the method has them."""
    if ".tokens" in field:
        return "shorten it: ids are never cut"
    if ".pair" in field or not windows:
        return _CUT
    return f"{_CUT}, or windows=0 to average the vectors of all its parts"


def without_windows(error: EncoderdError) -> EncoderdError:
    """The error, of a method that has no windows."""
    if error.reason == "INPUT_TOO_LONG":
        error.remedy = _remedy_of_too_long(
            error.violations[0][0] if error.violations else "", windows=False)
    return error


def with_remedy(error: EncoderdError, **remedies: str) -> EncoderdError:
    """The error, of a method with another remedy for its reason."""
    error.remedy = remedies.get(error.reason, error.remedy)
    return error


def count_prompt(error: EncoderdError, prompted: bool, kept: bool = False
                 ) -> EncoderdError:
    """The error; of an input that is too long with its prompt, it says so.

    prompted: whether the method put a prompt before the text.
    kept: whether on_error= keeps the error, and is no remedy then.
    """
    if (prompted and error.reason == "INPUT_TOO_LONG"
            and ", its prompt " not in error.message):  # an older server's
        error.message += _WITH_PROMPT
    if kept:
        with_remedy(error, EMPTY_INPUT="drop it")
    return error


def from_status(status: status_pb2.Status, places: Sequence[int] = ()
                ) -> EncoderdError:
    """What a google.rpc.Status says; details that nobody can read are left
    out.

    places: of each input of its request, in the caller's list.
    """
    reason = ""
    metadata: Dict[str, str] = {}
    violations: List[Tuple[str, str]] = []
    retry_delay = None
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        request = error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        try:
            if detail.Unpack(info):
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(request):
                violations += [(_move(v.field, places),
                                _move(v.description, places))
                               for v in request.field_violations]
            elif detail.Unpack(retry):
                retry_delay = retry.retry_delay.ToNanoseconds() / 1e9
        except DecodeError:
            pass
    index = metadata.get("input_index", "")
    if index.isdecimal():
        metadata["input_index"] = str(_place(index, places))
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    message = _move(status.message, places)
    if reason == "INPUT_TOO_LONG":
        message = _ADVICE.sub("", message)
    if reason == "INVALID_OPTION":
        message = name_arguments(message)
        violations = [(name_arguments(field), name_arguments(description))
                      for field, description in violations]
    error = make_error(code, message, reason, metadata=metadata,
                       violations=violations, retry_delay=retry_delay)
    if reason == "INPUT_TOO_LONG":
        error.remedy = _remedy_of_too_long(
            violations[0][0] if violations else "", windows=True)
    return error


def _larger(error: EncoderdError) -> Optional["re.Match[str]"]:
    """What gRPC itself says of a message above one of its limits; no reason
    comes with it. A full queue has the same code."""
    if error.code is not grpc.StatusCode.RESOURCE_EXHAUSTED or error.reason:
        return None
    return _LARGER.search(error.message)


# A server's connections have 256 MiB by default; the call of a message that
# takes a large share of it is reset. A reset of a smaller one has another
# cause.
_NO_MEMORY_BYTES = 64 << 20


def is_too_large(error: EncoderdError, size: int) -> bool:
    """Whether gRPC itself refused a request of `size` bytes for its size. It
    names the size, or resets the call of one that no connection has memory
    for; the server has not seen the request."""
    found = _larger(error)
    if found is not None:
        return int(found[2]) == size
    return (size >= _NO_MEMORY_BYTES and not error.reason
            and error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            and "RST_STREAM" in error.message)


def name_too_large(error: EncoderdError, size: int, places: Sequence[int]
                   ) -> EncoderdError:
    """What to say of such a request, whose inputs are at `places`."""
    one = len(places) == 1
    metadata = {"request_bytes": str(size)}
    if one:
        metadata["input_index"] = str(places[0])
    found = _larger(error)
    limit = ""
    if found is not None:
        metadata["limit"] = found[3]
        limit = f" at most {found[3]} (--max_message_bytes)"
    inputs = (f"inputs[{places[0]}] makes" if one else
              f"inputs[{places[0]}] to inputs[{places[-1]}] make")
    return make_error(
        grpc.StatusCode.INVALID_ARGUMENT,
        f"{inputs} a message of {size} bytes; the server takes"
        f"{limit or ' less'}: "
        f"{'shorten it' if one else 'use a smaller batch_size'}",
        TOO_LARGE, metadata=metadata)


def explain(error: EncoderdError, size: int = -1, places: Sequence[int] = ()
            ) -> EncoderdError:
    """The error itself; or, where gRPC refused a message for its size, what
    to do about that. A retry does not help.

    size: bytes of the request; -1: it was not for the request's size.
    places: of its inputs, in the caller's list.
    """
    if places and is_too_large(error, size):
        return name_too_large(error, size, places)
    found = _larger(error)
    if found is None:
        return error
    who, mend = "this client takes", ", or a larger max_answer_bytes"
    if found[1].lower() == "sent":
        who, mend = "the server sends", ""
    return make_error(
        grpc.StatusCode.INVALID_ARGUMENT,
        f"the answer is a message of {found[2]} bytes; {who} at most "
        f"{found[3]}: use a smaller batch_size{mend}", TOO_LARGE,
        metadata={"reply_bytes": found[2], "limit": found[3]})


def to_status(error: grpc.RpcError) -> status_pb2.Status:
    """What a gRPC error has on its trailers; its code and message alone if
    nobody can read those."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            try:
                status = status_pb2.Status.FromString(value)
            except DecodeError:
                pass
    status.code = error.code().value[0]
    status.message = error.details() or ""
    return status


def from_rpc_error(error: grpc.RpcError, link: Link,
                   places: Sequence[int] = ()) -> EncoderdError:
    """from_status of a gRPC error, which has the same on its trailers; what
    gRPC itself says is explained."""
    status = to_status(error)
    if status.details:
        return from_status(status, places)
    if (error.code() is grpc.StatusCode.CANCELLED
            and re.search("Channel closed|Locally cancelled", status.message)):
        return client_closed()
    message, remedy = explain_connection(error.code(), status.message, link)
    metadata = {}
    if remedy:
        metadata["grpc_message"] = status.message
    return make_error(error.code(), message, metadata=metadata, remedy=remedy)


def client_closed() -> EncoderdError:
    return make_error(grpc.StatusCode.CANCELLED, "the client was closed")


def out_of_time(link: Link, timeout: float, sharers: str = ""
                ) -> EncoderdError:
    """A DEADLINE_EXCEEDED of gRPC's own says neither who nor how long.
    sharers: the arguments for fewer requests at a time, if several share the
    server."""
    return make_error(
        grpc.StatusCode.DEADLINE_EXCEEDED,
        f"no response from {link.target} within {timeout:g} s"
        + (f"; it was dialed through a proxy ({link.proxy})" if link.proxy
           else ""),
        remedy=(f"{BYPASS}; or " if link.proxy else "")
        + _LONGER + (f", lower {sharers}" if sharers else "")
        + ", or check that an encoderd serves there")


def name_slow_list(error: EncoderdError, answered: int) -> None:
    """Names what may have made a call of a list late: the other calls, too.
    answered: calls of the list that the server did answer."""
    if error.code is not grpc.StatusCode.DEADLINE_EXCEEDED or error.reason:
        return
    smaller = "lower batch_size= or the client's calls_in_flight="
    if answered:
        error.message += (f"; {answered} other call{'s' * (answered > 1)} of "
                          "this list had an answer")
        error.remedy = (f"{_LONGER}, or {smaller}: they share the server; "
                        "embed_stream() hands over each result as it comes")
    else:
        error.remedy = error.remedy.replace(
            _LONGER, f"{_LONGER}, {smaller}", 1)


def after_retries(error: EncoderdError, timeout: float) -> EncoderdError:
    """The error that is left when no more attempts are made; of a LOADING, how
    long the caller would wait."""
    if error.reason != "LOADING":
        return error
    return make_error(
        error.code, f"{error.message}, after {timeout:g} s", error.reason,
        metadata=error.metadata, retry_delay=error.retry_delay,
        remedy=_LONGER)
