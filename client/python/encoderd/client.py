"""The client: lists of texts in, numpy arrays out."""

from __future__ import annotations

from typing import Any, Generator, Iterable, List, Optional, Union, overload

import grpc
import numpy as np

from encoderd import _method_jobs, _stream_blocking
from encoderd._encode_blocking import EncodeMethods
from encoderd._signatures import Inputs, OnError, Precision, Single, Span
from encoderd._stream_state import make_bulk
from encoderd.inputs import Input, as_list
from encoderd.positions import PositionReport
from encoderd.results import (Embedding, EmbedResult, TokenizedText,
                              TokenizedTexts, TokenStates)
from encoderd.v1 import encoder_pb2


class Client(EncodeMethods):
    """A connection to an encoderd server.

    Use it as a context manager, or close() it. Thread-safe: any thread may
    call anything; calls block the calling thread. It belongs to the process
    that made it: after a fork, make another one there. Pickled or copied, it
    is made again by the same arguments.

    A list of any length is cut into calls of batch_size texts, of which
    calls_in_flight are in flight at a time; rows keep the order of the list.
    Calls that the server refuses because it is busy, loading or leaving are
    retried (5 attempts with backoff, or after the pause that the server
    asks for); while its model loads, or where it names a pause for a full
    queue (RetryInfo), until the timeout.

    Every method raises an EncoderdError with the server's own words and what
    to do; see encoderd.errors. What is wrong with the arguments alone is a
    TypeError or a ValueError, and use in a forked process a RuntimeError. A message above
    a limit of gRPC's, either way, is an InvalidInputError (REQUEST_TOO_LARGE)
    that names the limit and what to do.
    """

    _grpc = grpc

    def close(self) -> None:
        """Ends the connection and every call on it; those, and later ones,
        raise EncoderdError (CANCELLED)."""
        self._methods.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def embed(
            self, inputs: Inputs, *, batch_size: int = 64,
            normalize_embeddings: Optional[bool] = None,
            show_progress_bar: bool = False, truncate: Optional[str] = None,
            dimensions: int = 0, pooling: Optional[str] = None,
            prompt_name: str = "", precision: Precision = "float32",
            ranges: Any = None, windows: Optional[int] = None,
            on_error: OnError = None, model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> EmbedResult:
        """The server's own options, and with each vector its token count and
        whether the text was cut. A single str is a list of one.

        batch_size: as in encode().
        normalize_embeddings: to length 1; None: as the model was made for.
        show_progress_bar: on standard error.
        truncate: None: a text that is too long raises InputTooLongError;
            "start", "end": it is cut there, at the start the prompt first.
        dimensions: keep this many leading values; 0: all.
        pooling: None: the model's own; or "cls", "mean", "max",
            "mean_sqrt_len", "weighted_mean", "last_token".
        prompt_name: a prompt of the model, put before each text; a pair
            among the inputs is then a ValueError. Empty: the model's default
            prompt, if it has one, which goes before texts and not pairs.
        precision: int8 and uint8 without `ranges` take those of each vector
            alone; EmbedResult.scales then has the steps.
        ranges: [2, D], least and largest value of each dimension.
        windows: a text that is too long is read in windows that share this
            many tokens, and their vectors are averaged: before they are
            normalized, by weights of their tokens without special tokens; the
            mean is then normalized as asked for. EmbedResult.windows tells
            how many; a prompt is in the first alone. Not together with
            truncate. None: no windows.
        on_error: None: the first bad input of the list raises. "per_input":
            it has its error in EmbedResult.errors, by its place in the list,
            and the others have their vectors; so does one that is too large
            for a message (REQUEST_TOO_LARGE). What is wrong with the request
            itself (an option, the model, the connection) raises in any case,
            and so does what is no input at all (TypeError).
        model: None: the client's.
        timeout: seconds for each call of the list, of which several wait for
            the server together (calls_in_flight); None: the client's;
            math.inf: no limit. Where one takes longer, the whole list raises;
            embed_stream() hands over what was answered before.
        """
        return self._run(_method_jobs.embed(
            as_list(inputs), model=self._name(model),
            batch_size=batch_size, precision=precision,
            show_progress=show_progress_bar, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows,
            on_error=on_error), timeout)

    def embed_stream(
            self, inputs: Iterable[Input], *, batch_size: int = 64,
            requests_in_flight: int = 16,
            normalize_embeddings: Optional[bool] = None,
            truncate: Optional[str] = None, dimensions: int = 0,
            pooling: Optional[str] = None, prompt_name: str = "",
            precision: Precision = "float32", ranges: Any = None,
            windows: Optional[int] = None, on_error: OnError = None,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Generator[Embedding, None, None]:
        """The results of any number of inputs, one by one, in their order.

            with open("texts.txt") as texts:
                for found in client.embed_stream(line.strip()
                                                 for line in texts):
                    use(found.index, found.input, found.vector)

        The source is read as it is needed, by the thread that asks for
        results, and at most requests_in_flight requests (1 to 64) of
        batch_size inputs are in memory. A request is sent when it is full,
        and while the source makes that thread wait, nothing is handed over:
        a source that stalls (a generator over a queue) holds up the texts
        before it and their answers. For such a one, embed() what is there,
        or use AsyncClient with an async iterable. To stop early, leave
        the loop, or close() the iterator if you keep it; what is in flight
        is then cancelled. Nothing is sent before the first result is asked
        for.

        A stream that breaks (server restarted or draining, connection lost) is
        opened again and what was not answered is sent again, as is what a
        full queue refused. It ends when nothing was answered for the timeout,
        or with an error that no retry would mend.

        on_error: None: raises a bad input's error when its turn has come,
            after the results before it. "per_input": it has its error in
            Embedding.error, and the others go on; so does one that is too
            large for a message (REQUEST_TOO_LARGE). What the source raises, or
            what is no input (TypeError), is raised in its turn in any case.
        timeout: seconds without any answer, reconnecting included; None: the
            client's; math.inf: no limit.
        The other options are those of embed().
        """
        bulk = make_bulk(
            inputs,
            batch_size=batch_size, requests_in_flight=requests_in_flight,
            precision=precision, on_error=on_error, model=self._name(model),
            patience=self._limit(timeout),
            link=self._methods.link, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows)
        method = self._methods["EmbedStream"]
        return _stream_blocking.run(
            bulk, inputs, lambda: _stream_blocking.Stream(method))

    @overload
    def token_embeddings(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> np.ndarray: ...

    @overload
    def token_embeddings(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> List[np.ndarray]: ...

    def token_embeddings(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Optional[str] = None, span: Span = None,
            before_norm: bool = False, batch_size: int = 4,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[np.ndarray, List[np.ndarray]]:
        """The states of every token: float32 [n, H] for each text, in a list;
        for a single str the array alone. No prompt is put before it.

        layer: 0: the embedding block's own output; l: encoder layer l's;
            None: the last.
        truncate: as in embed().
        span: None, "all": of all tokens; "without_special_tokens": without
            those that the model puts around a text.
        before_norm: with layer 0: the sum of the table rows, before the
            block's LayerNorm; as wide as the tables are.
        batch_size: texts of one call: its answer holds 4 n H bytes for each.
        model, timeout: as in embed().

        A layer that the model does not have raises InvalidInputError
        (LAYER_OUT_OF_RANGE), a text that is too long InputTooLongError.
        """
        return self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_embeddings, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm), timeout)

    @overload
    def token_states(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenStates: ...

    @overload
    def token_states(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> List[TokenStates]: ...

    def token_states(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Optional[str] = None, span: Span = None,
            before_norm: bool = False, on_error: OnError = None,
            batch_size: int = 4, model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[TokenStates, List[TokenStates]]:
        """token_embeddings, and with each text its token count, whether it was
        cut, and, as on_error="per_input" asks for, its error.

        The arguments are those of token_embeddings(); on_error is as in
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
            self, inputs: Inputs, *, batch_size: int = 64,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[TokenizedText, TokenizedTexts]:
        """Tokens, ids and offsets of each text, in a list; for a single str
        the TokenizedText alone. Nothing is computed, no text has too many
        tokens, and no prompt is put before it.

        The list is also what SentenceTransformer.tokenize gives: its
        "input_ids", "token_type_ids" and "attention_mask" are [n, T].

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
        """What the rows of the position table look like, and whether they
        look trained.

        first_row: of the table as stored, the model's offset included.
        row_count: 0: to the table's end, at most 1024.
        cosine, values: give the cosines of all pairs of rows; the rows.
        model, timeout: as in embed().

        Rows that the table does not have raise InvalidInputError
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
        """Sizes, limits and prompts of one model, as Model of encoder.proto says
        them. name: None: the client's; an unknown one raises NotFoundError.
        timeout: as in embed()."""
        return self._run(_method_jobs.model(self._name(name)), timeout)

    def health(self, service: str = "", *,
               timeout: Optional[float] = None) -> str:
        """"SERVING", "NOT_SERVING" (loading, leaving) or "UNKNOWN"; at once.
        service: empty: the whole server; one that it has not raises
        NotFoundError. timeout: as in embed()."""
        return self._run(_method_jobs.health(service), timeout)
