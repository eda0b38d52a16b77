"""The client: lists of texts in, numpy arrays out."""

from __future__ import annotations

import importlib.resources
from typing import Any, Callable, Iterable, List, Optional, Sequence, Union

import grpc
import numpy as np
from google.protobuf import wrappers_pb2

from encoderd._calls import run_calls
from encoderd._progress import make_progress
from encoderd.errors import from_rpc_error
from encoderd.inputs import Input, TokenIds, cut
from encoderd.results import (EmbedResult, Rows, TokenizedText, check_count,
                              read_states, read_tokens)
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

DEFAULT_TARGET = "localhost:8400"

_HEALTH = {1: "SERVING", 2: "NOT_SERVING"}


def _enum(enum: Any, prefix: str, value: Optional[str]) -> int:
    """"mean" -> POOLING_MEAN; None -> ..._UNSPECIFIED."""
    name = prefix + (value or "unspecified").upper()
    if name not in enum.keys():
        known = [k[len(prefix):].lower() for k in enum.keys()[1:]]
        raise ValueError(f"{prefix[:-1].lower()} is {value!r}; expected one of "
                         f"{', '.join(known)}")
    return enum.Value(name)


def _as_list(texts: Union[Input, Iterable[Input]]) -> Sequence[Input]:
    if isinstance(texts, (str, TokenIds)):
        return [texts]
    return texts if isinstance(texts, (list, tuple)) else list(texts)


class Client:
    """A connection to an encoderd server.

    Use it as a context manager, or close() it. Thread-safe: any thread may
    call anything; calls block the calling thread.

    A list of any length is cut into calls of batch_size texts, of which
    calls_in_flight are under way together; rows keep the order of the list.
    Calls that the server refuses because it is busy, loading or leaving are
    tried again (at most 5 attempts in all, with backoff).

    Every method raises an EncoderdError with the server's own words; see
    encoderd.errors.
    """

    def __init__(self, target: str = DEFAULT_TARGET, *, model: str = "",
                 timeout: Optional[float] = 60.0, calls_in_flight: int = 8,
                 max_answer_bytes: int = 256 << 20,
                 credentials: Optional[grpc.ChannelCredentials] = None):
        """Returns at once; the connection is made by the first call.

        target: host:port, or any other gRPC name.
        model: asked for where a method is not told another; empty: the
            server's default.
        timeout: seconds for one call, its retries included; None: no limit.
        max_answer_bytes: the largest answer that is accepted.
        credentials: None: no encryption.
        """
        if calls_in_flight < 1:
            raise ValueError(f"calls_in_flight is {calls_in_flight}; it must "
                             "be at least 1")
        config = (importlib.resources.files("encoderd")
                  / "service_config.json").read_text(encoding="utf-8")
        options = [
            ("grpc.service_config", config),
            ("grpc.enable_retries", 1),
            # A request longer than this is sent once and never again.
            ("grpc.per_rpc_retry_buffer_size", 16 << 20),
            ("grpc.max_receive_message_length", max_answer_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.primary_user_agent", "encoderd-python"),
        ]
        if credentials is None:
            self._channel = grpc.insecure_channel(target, options)
        else:
            self._channel = grpc.secure_channel(target, credentials, options)
        self._stub = encoder_pb2_grpc.EncoderStub(self._channel)
        self._health = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            # The same on the wire as HealthCheckRequest and -Response.
            request_serializer=wrappers_pb2.StringValue.SerializeToString,
            response_deserializer=wrappers_pb2.Int32Value.FromString)
        self._model = model
        self._timeout = timeout
        self._calls_in_flight = calls_in_flight

    def close(self) -> None:
        """Ends the connection and every call on it."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def encode(self, texts: Union[Input, Iterable[Input]], *,
               batch_size: int = 64,
               normalize_embeddings: Optional[bool] = None,
               show_progress_bar: bool = False, **options: Any) -> np.ndarray:
        """One vector for each text: float32 [n, H]; for a single str, [H].

        texts: a str, or an iterable of str, (str, str) pairs and TokenIds.
        batch_size: texts of one call.
        normalize_embeddings: to length 1; None: as the model was made for.
        show_progress_bar: on standard error; tqdm's, if it is installed.
        options: see embed().
        """
        result = self.embed(
            texts, batch_size=batch_size,
            normalize_embeddings=normalize_embeddings,
            show_progress_bar=show_progress_bar, **options)
        single = isinstance(texts, (str, TokenIds))
        return result.vectors[0] if single else result.vectors

    def embed(self, texts: Union[Input, Iterable[Input]], *,
              batch_size: int = 64,
              normalize_embeddings: Optional[bool] = None,
              show_progress_bar: bool = False, truncate: Optional[str] = None,
              dimensions: int = 0, pooling: Optional[str] = None,
              prompt_name: str = "", model: Optional[str] = None
              ) -> EmbedResult:
        """encode() with the token count of each text and whether it was cut.

        truncate: None: a text that is too long raises InputTooLongError;
            "start", "end": it is cut there.
        dimensions: keep the first so many values; 0: all.
        pooling: None: the model's own; or "cls", "mean", "max",
            "mean_sqrt_len", "weighted_mean", "last_token".
        prompt_name: a prompt of the model, put before each text.
        model: None: the client's.
        """
        values = _as_list(texts)
        options = encoder_pb2.EmbedOptions(
            pooling=_enum(encoder_pb2.Pooling, "POOLING_", pooling),
            normalize=normalize_embeddings, dimensions=dimensions,
            truncate=_enum(encoder_pb2.Truncate, "TRUNCATE_", truncate),
            prompt_name=prompt_name, packed=True)
        name = self._name(model)
        rows = Rows(len(values))
        progress = make_progress(len(values), show_progress_bar)
        try:
            for first, count, answer in self._run(
                    self._stub.Embed, values, batch_size,
                    lambda inputs: encoder_pb2.EmbedRequest(
                        model=name, inputs=inputs, options=options)):
                rows.add(first, count, answer)
                progress.update(count)
        finally:
            progress.close()
        width = 0
        if not values:
            width = dimensions or self.model(name).dimensions
        return rows.result(width)

    def token_embeddings(self, texts: Union[Input, Iterable[Input]], *,
                         layer: Optional[int] = None,
                         truncate: Optional[str] = None, batch_size: int = 4,
                         model: Optional[str] = None
                         ) -> Union[np.ndarray, List[np.ndarray]]:
        """The states of every token: float32 [n, H] for each text, in a list;
        for a single str the array alone.

        layer: 0: the embedding block's own output; l: encoder layer l's;
            None: the last.
        """
        name = self._name(model)
        cutting = _enum(encoder_pb2.Truncate, "TRUNCATE_", truncate)
        arrays: List[np.ndarray] = []
        for _, count, answer in self._run(
                self._stub.Encode, _as_list(texts), batch_size,
                lambda inputs: encoder_pb2.EncodeRequest(
                    model=name, inputs=inputs, layer=layer,
                    truncate=cutting)):
            check_count(len(answer.states), count)
            arrays += [read_states(states) for states in answer.states]
        return arrays[0] if isinstance(texts, (str, TokenIds)) else arrays

    def tokenize(self, texts: Union[Input, Iterable[Input]], *,
                 batch_size: int = 64, model: Optional[str] = None
                 ) -> Union[TokenizedText, List[TokenizedText]]:
        """Tokens, ids and offsets of each text, in a list; for a single str
        the TokenizedText alone. Nothing is computed, no text is too long."""
        name = self._name(model)
        found: List[TokenizedText] = []
        for _, count, answer in self._run(
                self._stub.Tokenize, _as_list(texts), batch_size,
                lambda inputs: encoder_pb2.TokenizeRequest(
                    model=name, inputs=inputs)):
            check_count(len(answer.inputs), count)
            found += [read_tokens(tokens) for tokens in answer.inputs]
        return found[0] if isinstance(texts, (str, TokenIds)) else found

    def models(self) -> List[encoder_pb2.Model]:
        """The models of the server, the default one first."""
        request = encoder_pb2.ListModelsRequest()
        return list(self._call(self._stub.ListModels, request).models)

    def model(self, name: Optional[str] = None) -> encoder_pb2.Model:
        """Sizes, limits and prompts of one model. None: the client's."""
        request = encoder_pb2.GetModelRequest(model=self._name(name))
        return self._call(self._stub.GetModel, request)

    def health(self, service: str = "") -> str:
        """"SERVING", "NOT_SERVING" or "UNKNOWN". Empty: the whole server."""
        request = wrappers_pb2.StringValue(value=service)
        return _HEALTH.get(self._call(self._health, request).value, "UNKNOWN")

    def _name(self, model: Optional[str]) -> str:
        return self._model if model is None else model

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error

    def _run(self, method: Any, values: Sequence[Input], batch_size: int,
             make: Callable[[List[Any]], Any]) -> Iterable[Any]:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it must be at "
                             "least 1")
        return run_calls(
            cut(values, batch_size),
            lambda inputs: method.future(make(inputs), timeout=self._timeout),
            self._calls_in_flight)
