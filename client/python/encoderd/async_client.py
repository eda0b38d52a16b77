"""The client for asyncio: the methods of Client, awaited."""

from __future__ import annotations

from typing import (Any, AsyncGenerator, AsyncIterable, Iterable, List,
                    Optional, Union, overload)

import grpc
import numpy as np

from encoderd import _method_jobs, _stream_asyncio
from encoderd._channel import LoopMethods
from encoderd._client_settings import (STREAM_CALLS_IN_FLIGHT,
                                       TEXTS_PER_CALL, TEXTS_PER_ENCODE_CALL)
from encoderd._encode_asyncio import AsyncEncodeMethods
from encoderd._signatures import (Inputs, OnError, Pooling, Precision, Single,
                                  Span, Truncate)
from encoderd._stream_state import make_bulk
from encoderd.inputs import Input, as_list
from encoderd.positions import PositionReport
from encoderd.results import (Embedding, EmbedResult, TokenizedText,
                              TokenizedTexts, TokenStates)
from encoderd.v1 import encoder_pb2


class AsyncClient(AsyncEncodeMethods):
    """Client for asyncio. Methods and properties that ask the server are
    awaited (`await client.max_seq_length`); others, such as similarity(), are
    plain. Arguments, results and errors are those of Client.

    It belongs to the event loop of its first call: any task of that loop may
    use it; in another loop it raises RuntimeError. Cancelling a task cancels
    its calls. Arrays are made on the loop's thread.
    """

    _grpc = grpc.aio
    _kind_of_methods = LoopMethods

    async def close(self) -> None:
        """Closes the connection. Calls in flight and later calls raise
        EncoderdError (CANCELLED); before Python 3.11, awaited calls in flight
        raise asyncio.CancelledError."""
        await self._methods.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *unused: Any) -> None:
        await self.close()

    async def embed(
            self, inputs: Inputs, *, batch_size: int = TEXTS_PER_CALL,
            normalize_embeddings: Optional[bool] = None,
            show_progress_bar: bool = False, truncate: Truncate = None,
            dimensions: int = 0, pooling: Pooling = None,
            prompt_name: str = "", precision: Optional[Precision] = "float32",
            ranges: Any = None, windows: Optional[int] = None,
            on_error: OnError = None, fingerprint: str = "",
            model: Optional[str] = None, timeout: Optional[float] = None
            ) -> EmbedResult:
        """As Client.embed."""
        return await self._run(_method_jobs.embed(
            as_list(inputs), model=self._name(model),
            batch_size=batch_size, precision=precision,
            show_progress=show_progress_bar, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows,
            on_error=on_error, fingerprint=fingerprint), timeout)

    def embed_stream(
            self, inputs: Union[Iterable[Input], AsyncIterable[Input]], *,
            batch_size: int = TEXTS_PER_CALL,
            requests_in_flight: int = STREAM_CALLS_IN_FLIGHT,
            normalize_embeddings: Optional[bool] = None,
            truncate: Truncate = None, dimensions: int = 0,
            pooling: Pooling = None, prompt_name: str = "",
            precision: Optional[Precision] = "float32", ranges: Any = None,
            windows: Optional[int] = None, on_error: OnError = None,
            fingerprint: str = "", model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> AsyncGenerator[Embedding, None]:
        """As Client.embed_stream, for `async for`; not awaited.

        inputs: an async iterable, which a separate task reads as far as
            requests_in_flight allows. If it yields nothing for about 50 ms,
            the inputs at hand are sent; answers are returned while it waits.
            Or a plain iterable, which the loop's thread reads, as in
            Client.embed_stream: one that stalls blocks the loop.

        To stop early, aclose() the iterator: one that you merely leave
        continues until it is collected.
        """
        bulk = make_bulk(
            inputs,
            batch_size=batch_size, requests_in_flight=requests_in_flight,
            precision=precision, on_error=on_error, model=self._name(model),
            patience=self._limit(timeout), link=self._methods.link,
            takes_async=True, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows,
            fingerprint=fingerprint)
        return _stream_asyncio.run(
            bulk, inputs, lambda changed: _stream_asyncio.Stream(
                self._methods["EmbedStream"], self._methods["Embed"], changed),
            lambda: self._methods["Health"])

    @overload
    async def token_embeddings(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> np.ndarray: ...

    @overload
    async def token_embeddings(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> List[np.ndarray]: ...

    async def token_embeddings(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Truncate = None, span: Span = None,
            before_norm: bool = False,
            batch_size: int = TEXTS_PER_ENCODE_CALL,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[np.ndarray, List[np.ndarray]]:
        """As Client.token_embeddings."""
        return await self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_embeddings, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm), timeout)

    @overload
    async def token_states(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenStates: ...

    @overload
    async def token_states(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Truncate = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> List[TokenStates]: ...

    async def token_states(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Truncate = None, span: Span = None,
            before_norm: bool = False, on_error: OnError = None,
            batch_size: int = TEXTS_PER_ENCODE_CALL,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[TokenStates, List[TokenStates]]:
        """As Client.token_states."""
        return await self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_states, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm, on_error=on_error), timeout)

    @overload
    async def tokenize(  # type: ignore[overload-overlap]
            self, inputs: Single, *, batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenizedText: ...

    @overload
    async def tokenize(
            self, inputs: Iterable[Input], *, batch_size: int = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> TokenizedTexts: ...

    async def tokenize(
            self, inputs: Inputs, *, batch_size: int = TEXTS_PER_CALL,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> Union[TokenizedText, TokenizedTexts]:
        """As Client.tokenize."""
        return await self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.tokenize, model=self._name(model),
            batch_size=batch_size), timeout)

    async def inspect_positions(
            self, first_row: int = 0, row_count: int = 0, *,
            cosine: bool = False, values: bool = False,
            model: Optional[str] = None,
            timeout: Optional[float] = None
            ) -> PositionReport:
        """As Client.inspect_positions."""
        return await self._run(_method_jobs.inspect_positions(
            model=self._name(model), first_row=first_row,
            row_count=row_count, cosine=cosine, values=values), timeout)

    async def models(self, *, timeout: Optional[float] = None
                     ) -> List[encoder_pb2.Model]:
        """As Client.models."""
        return await self._run(_method_jobs.models(), timeout)

    async def model(self, name: Optional[str] = None, *,
                    timeout: Optional[float] = None) -> encoder_pb2.Model:
        """As Client.model."""
        return await self._run(_method_jobs.model(self._name(name)), timeout)

    async def health(self, service: str = "", *,
                     timeout: Optional[float] = None) -> str:
        """As Client.health."""
        return await self._run(_method_jobs.health(service), timeout)
