"""The client: lists of texts in, numpy arrays out."""

from __future__ import annotations

from typing import Any, Generator, Iterable, List, Optional, Union, overload

import grpc
import numpy as np

from encoderd import _method_jobs, _stream_blocking
from encoderd._client_settings import (STREAM_CALLS_IN_FLIGHT,
                                       TEXTS_PER_CALL, TEXTS_PER_ENCODE_CALL)
from encoderd._encode_blocking import EncodeMethods
from encoderd._signatures import (Inputs, OnError, Pooling, Precision, Single,
                                  Span, Truncate)
from encoderd._stream_state import make_bulk
from encoderd.inputs import Input, as_list
from encoderd.positions import PositionReport
from encoderd.results import (Embedding, EmbedResult, TokenizedText,
                              TokenizedTexts, TokenStates)
from encoderd.v1 import encoder_pb2


class Client(EncodeMethods):
    """A connection to an encoderd server.

    Use it as a context manager, or close() it. It is thread-safe; a call
    blocks its thread. A client belongs to the process that made it: after a
    fork, make another one there. A pickled or copied client has the same
    arguments. Clients of one process with the same target and options may share
    a connection, which gRPC closes with the last of them.

    A list of any length is split into calls of batch_size texts, of which
    calls_in_flight are in flight together; rows keep the order of the list.
    Calls that the server refuses because it is busy, loading or shutting down
    are retried: 5 attempts with backoff, or after the pause that the server
    names; a single one while 50 more attempts have failed than succeeded
    (retryThrottling in service_config.json). While its model loads, or if it
    names a pause for a full queue (RetryInfo), they are retried until the
    timeout. When the retries are used up, encode() and embed() raise; a job
    that must survive a restart of the server uses embed_stream().

    Errors: a wrong argument is a TypeError or a ValueError. Everything else
    is an EncoderdError with the server's message and a remedy; see
    encoderd.errors. A message above one of gRPC's limits, in either direction,
    is an InvalidInputError (REQUEST_TOO_LARGE). Use in a forked process is a
    RuntimeError.
    """

    _grpc = grpc

    def close(self) -> None:
        """Closes the connection. Calls in flight and later calls raise
        EncoderdError (CANCELLED)."""
        self._methods.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def embed(
            self, inputs: Inputs, *, batch_size: int = TEXTS_PER_CALL,
            normalize_embeddings: Optional[bool] = None,
            show_progress_bar: bool = False, truncate: Truncate = None,
            dimensions: int = 0, pooling: Pooling = None,
            prompt_name: str = "", precision: Optional[Precision] = "float32",
            ranges: Any = None, windows: Optional[int] = None,
            on_error: OnError = None, fingerprint: str = "",
            model: Optional[str] = None, timeout: Optional[float] = None
            ) -> EmbedResult:
        """Embeds texts by the server's own options. Returns an EmbedResult:
        vectors [n, D], the token count of each input, and whether it was cut.

        inputs: as in encode(); a single str is a list of one.
        batch_size: as in encode().
        normalize_embeddings: True: to length 1. False: not normalized. None:
            as the model does.
        show_progress_bar: on standard error.
        truncate: None, "none": a text that is too long, its prompt included,
            raises InputTooLongError. "start", "end": it is cut there; at the
            start, its prompt is cut first.
        dimensions: keep this many leading values; 0: all.
        pooling: None: the model's own; or "cls", "mean", "max",
            "mean_sqrt_len", "weighted_mean", "last_token".
        prompt_name: a prompt of the model, put before each text; a pair or
            TokenIds among the inputs is then a ValueError, unless the prompt's
            text is empty. Empty: the model's default prompt, if it has one,
            which goes before texts only.
        precision: as in encode(). int8 and uint8 without `ranges` take the
            range of each vector alone; EmbedResult.scales then has the steps.
        ranges: [2, D], the least and the largest value of each dimension.
        windows: as in encode(); EmbedResult.windows tells how many.
        on_error: None, "fail_request": the first bad input of the list
            raises. "per_input": its error is in EmbedResult.errors, by its
            place in the list, and the others have their vectors. This
            includes an input that is too large for a message
            (REQUEST_TOO_LARGE); inputs that are so only together are sent in
            smaller requests. A fault of the whole request (an option, the
            model, the connection) always raises, and so does an input of the
            wrong type (TypeError).
        fingerprint: that every answer must have, such as the one stored with
            the vectors of an earlier run (EmbedResult.fingerprint). The first
            answer of another model, or of other settings, raises EncoderdError
            (FAILED_PRECONDITION); one without a fingerprint, from an older
            server, is not checked. Empty: all answers must have that of the
            first.
        model: None: the client's.
        timeout: seconds for each call of the list, of which several are
            processed together (calls_in_flight); None: the client's;
            math.inf: no limit. If one call takes longer, the whole list
            raises; embed_stream() returns what was answered before.

        Raises the errors of encode().
        """
        return self._run(_method_jobs.embed(
            as_list(inputs), model=self._name(model),
            batch_size=batch_size, precision=precision,
            show_progress=show_progress_bar, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows,
            on_error=on_error, fingerprint=fingerprint), timeout)

    def embed_stream(
            self, inputs: Iterable[Input], *, batch_size: int = TEXTS_PER_CALL,
            requests_in_flight: int = STREAM_CALLS_IN_FLIGHT,
            normalize_embeddings: Optional[bool] = None,
            truncate: Truncate = None, dimensions: int = 0,
            pooling: Pooling = None, prompt_name: str = "",
            precision: Optional[Precision] = "float32", ranges: Any = None,
            windows: Optional[int] = None, on_error: OnError = None,
            fingerprint: str = "", model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Generator[Embedding, None, None]:
        """Yields an Embedding for each of any number of inputs, in their order.

            with open("texts.txt") as texts:
                for found in client.embed_stream(line.strip()
                                                 for line in texts):
                    use(found.index, found.input, found.vector)

        The thread that asks for results reads the source as needed. At most
        requests_in_flight requests (1 to 64) of batch_size inputs are in
        memory. A request is sent when it is full; nothing is sent before you
        ask for the first result. A source that stalls (a generator over a
        queue) delays the texts before it and their answers, because that
        thread waits in the source: embed() the texts at hand instead, or use
        AsyncClient with an async iterable. To stop early, leave the loop, or
        close() the iterator if you keep it; that cancels what is in flight.

        If the stream breaks (server restarted or draining, connection lost, a
        reset by the server), it is reopened, and what was not answered is sent
        again, as is what a full queue refused or what expired in it. It raises
        if nothing is answered during the timeout, or on an error that no retry
        can fix.

        on_error: None, "fail_request": a bad input raises its error when its
            turn comes, after the results before it. "per_input": its error is
            in Embedding.error, and the stream continues. This includes an
            input that is too large for a message (REQUEST_TOO_LARGE). An
            exception of the source, or an input of the wrong type
            (TypeError), is always raised in its turn.
        prompt_name: as in embed(), but a pair or TokenIds with it is always a
            ValueError.
        timeout: seconds without any answer, reconnecting included; None: the
            client's; math.inf: no limit.
        The other arguments are those of embed().
        """
        bulk = make_bulk(
            inputs,
            batch_size=batch_size, requests_in_flight=requests_in_flight,
            precision=precision, on_error=on_error, model=self._name(model),
            patience=self._limit(timeout),
            link=self._methods.link, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows,
            fingerprint=fingerprint)
        self._methods.check()  # at once, as of every call
        return _stream_blocking.run(
            bulk, inputs,
            lambda: _stream_blocking.Stream(self._methods["EmbedStream"]),
            lambda: self._methods["Health"])

    @overload
    def token_embeddings(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> np.ndarray: ...

    @overload
    def token_embeddings(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> List[np.ndarray]: ...

    def token_embeddings(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Truncate = None, span: Span = None,
            before_norm: bool = False,
            batch_size: int = TEXTS_PER_ENCODE_CALL,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[np.ndarray, List[np.ndarray]]:
        """Returns the states of every token: a list of float32 [tokens, H], one
        for each text; for a single str or TokenIds the array alone. No
        prompt is put before a text.

        inputs: as in encode().
        layer: 0: the output of the embedding block; l: of encoder layer l;
            None: of the last.
        truncate: as in embed().
        span: None, "all": all tokens; "without_special_tokens": without those
            that the model puts around a text.
        before_norm: with layer 0: the sum of the table rows, before the
            block's LayerNorm; as wide as the tables.
        batch_size: texts in one call; the answer has 4 * tokens * H bytes for
            each.
        model, timeout: as in embed().

        Raises InvalidInputError for a layer that the model does not have
        (LAYER_OUT_OF_RANGE), InputTooLongError for a text that is too long,
        and otherwise the errors of encode().
        """
        return self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_embeddings, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm), timeout)

    @overload
    def token_states(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenStates: ...

    @overload
    def token_states(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> List[TokenStates]: ...

    def token_states(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Truncate = None, span: Span = None,
            before_norm: bool = False, on_error: OnError = None,
            batch_size: int = TEXTS_PER_ENCODE_CALL,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[TokenStates, List[TokenStates]]:
        """token_embeddings() with the token count of each text, whether it was
        cut and, with on_error="per_input", its error. Returns a list of
        TokenStates; for a single str or TokenIds one TokenStates.

        The arguments are those of token_embeddings(), and on_error as in
        embed(), with the error in TokenStates.error.
        """
        return self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_states, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm, on_error=on_error), timeout)

    @overload
    def tokenize(  # type: ignore[overload-overlap]
            self, inputs: Single, *, batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenizedText: ...

    @overload
    def tokenize(
            self, inputs: Iterable[Input], *, batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenizedTexts: ...

    def tokenize(
            self, inputs: Inputs, *, batch_size: int = TEXTS_PER_CALL,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[TokenizedText, TokenizedTexts]:
        """Returns tokens, ids and offsets: a list with a TokenizedText for each
        text; for a single str or TokenIds the TokenizedText alone. No vector
        is computed, and no prompt is put before it. A text may be longer than
        max_len; one that exceeds the server's --max_queue_tokens (524,288 by
        default) or the size of an answer is refused: REQUEST_TOO_LARGE.
        Offsets count the bytes of the UTF-8 text, not its characters:
        text.encode()[begin:end].decode() is what a token stands for.

        The list also has the arrays of SentenceTransformer.tokenize by name:
        "input_ids", "token_type_ids" and "attention_mask", int64 [n, T].

        batch_size: as in encode(); model, timeout: as in embed().
        """
        return self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.tokenize, model=self._name(model),
            batch_size=batch_size), timeout)

    def inspect_positions(
            self, first_row: int = 0, row_count: int = 0, *,
            cosine: bool = False, values: bool = False,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> PositionReport:
        """Returns a PositionReport: norms and cosines of rows of the position
        table, and whether they look trained.

        first_row: of the table as stored, the model's offset included.
        row_count: 0: to the end of the table, at most 1024.
        cosine: True: include the cosines of all pairs of rows.
        values: True: include the rows.
        model, timeout: as in embed().

        Raises InvalidInputError for rows that the table does not have
        (ROWS_OUT_OF_RANGE).
        """
        return self._run(_method_jobs.inspect_positions(
            model=self._name(model), first_row=first_row,
            row_count=row_count, cosine=cosine, values=values), timeout)

    def models(self, *, timeout: Optional[float] = None
               ) -> List[encoder_pb2.Model]:
        """The models of the server, the default one first. timeout: as in
        embed()."""
        return self._run(_method_jobs.models(), timeout)

    def model(self, name: Optional[str] = None, *,
              timeout: Optional[float] = None) -> encoder_pb2.Model:
        """Sizes, limits and prompts of a model: the message Model of
        encoder.proto. name: None: the client's; an unknown one raises
        NotFoundError. timeout: as in embed()."""
        return self._run(_method_jobs.model(self._name(name)), timeout)

    def health(self, service: str = "", *,
               timeout: Optional[float] = None) -> str:
        """"SERVING", "NOT_SERVING" (loading or shutting down) or "UNKNOWN";
        does not wait for a model that loads. service: empty: the whole server;
        an unknown one raises NotFoundError. timeout: as in embed()."""
        return self._run(_method_jobs.health(service), timeout)
