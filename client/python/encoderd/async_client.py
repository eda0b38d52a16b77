"""The client for asyncio: the methods of Client, awaited."""

from __future__ import annotations

from typing import (Any, AsyncGenerator, AsyncIterable, Iterable, List,
                    Literal, Optional, Union, overload)

import grpc
import numpy as np

from encoderd import (_method_jobs, _run_asyncio, _sentence_transformers,
                      _stream_asyncio)
from encoderd._client_base import ClientBase
from encoderd._signatures import (Inputs, OnError, OutputValue, Precision,
                                  Single, Span, one_of)
from encoderd._stream_state import make_bulk
from encoderd.inputs import Input, as_list
from encoderd.positions import PositionReport
from encoderd.results import (Embedding, EmbedResult, TokenizedText,
                              TokenStates)
from encoderd.v1 import encoder_pb2


class AsyncClient(ClientBase):
    """Client, for asyncio: every method of it, to be awaited.

    Make it where the event loop runs; it belongs to that loop, and any task
    of it may call anything. A task that is cancelled cancels its calls.
    Arrays are made on the loop's thread.
    """

    _grpc = grpc.aio

    async def close(self) -> None:
        """Ends the connection and every call on it; those, and later ones,
        raise EncoderdError (CANCELLED; before Python 3.11 awaited calls of
        asyncio raise CancelledError)."""
        await self._channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *unused: Any) -> None:
        await self.close()

    @overload
    async def encode(
            self, inputs: Optional[Inputs] = ...,
            prompt_name: Optional[str] = ..., prompt: Optional[str] = ...,
            batch_size: int = ..., show_progress_bar: Optional[bool] = ...,
            output_value: Literal["sentence_embedding"] = ...,
            precision: Optional[Precision] = ...,
            convert_to_numpy: Literal[True] = ...,
            convert_to_tensor: Literal[False] = ..., device: Any = ...,
            normalize_embeddings: bool = ...,
            truncate_dim: Optional[int] = ..., pool: None = ...,
            chunk_size: Optional[int] = ..., *,
            sentences: Optional[Inputs] = ..., truncate: Optional[str] = ...,
            dimensions: int = ..., pooling: Optional[str] = ...,
            ranges: Any = ..., model: Optional[str] = ...
            ) -> np.ndarray: ...

    @overload
    async def encode(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = 64, show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None, *,
            sentences: Optional[Inputs] = None, truncate: Optional[str] = None,
            dimensions: int = 0, pooling: Optional[str] = None,
            ranges: Any = None, model: Optional[str] = None
            ) -> Any: ...

    async def encode(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = 64, show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None, *,
            sentences: Optional[Inputs] = None, truncate: Optional[str] = None,
            dimensions: int = 0, pooling: Optional[str] = None,
            ranges: Any = None, model: Optional[str] = None
            ) -> Any:
        """As Client.encode."""
        return await self._run(_sentence_transformers.encode(
            one_of(inputs, sentences, pool), prompt_name, prompt, batch_size,
            show_progress_bar, output_value, precision, convert_to_numpy,
            convert_to_tensor, normalize_embeddings, truncate_dim,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            ranges=ranges, model=self._name(model)))

    async def embed(
            self, inputs: Inputs, *, batch_size: int = 64,
            normalize_embeddings: Optional[bool] = None,
            show_progress_bar: bool = False, truncate: Optional[str] = None,
            dimensions: int = 0, pooling: Optional[str] = None,
            prompt_name: str = "", precision: Precision = "float32",
            ranges: Any = None, windows: Optional[int] = None,
            on_error: OnError = None, model: Optional[str] = None
            ) -> EmbedResult:
        """As Client.embed."""
        return await self._run(_method_jobs.embed(
            as_list(inputs), model=self._name(model),
            batch_size=batch_size, precision=precision,
            show_progress=show_progress_bar, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows,
            on_error=on_error))

    def embed_stream(
            self, inputs: Union[Iterable[Input], AsyncIterable[Input]], *,
            batch_size: int = 64,
            requests_in_flight: int = 16,
            normalize_embeddings: Optional[bool] = None,
            truncate: Optional[str] = None, dimensions: int = 0,
            pooling: Optional[str] = None, prompt_name: str = "",
            precision: Precision = "float32", ranges: Any = None,
            windows: Optional[int] = None, on_error: OnError = None,
            model: Optional[str] = None
            ) -> AsyncGenerator[Embedding, None]:
        """As Client.embed_stream, for `async for`; not to be awaited.

        inputs: an async iterable, which a task of its own reads as far as
            requests_in_flight allow; when it has no more for 50 ms or so,
            what is there is sent, and answers are handed over while it
            waits. Or a plain one, which the loop's thread reads, as
            Client.embed_stream does: one that stalls holds up the loop.
            To stop early, aclose() the iterator: asyncio lets one that
            was merely left go on until it is collected.
        """
        bulk = make_bulk(
            inputs,
            batch_size=batch_size, requests_in_flight=requests_in_flight,
            precision=precision, on_error=on_error, model=self._name(model),
            patience=self._timeout, normalize=normalize_embeddings,
            truncate=truncate, dimensions=dimensions, pooling=pooling,
            prompt_name=prompt_name, ranges=ranges, windows=windows)
        methods = self._methods
        return _stream_asyncio.run(
            bulk, inputs, lambda changed: _stream_asyncio.Stream(
                methods["EmbedStream"], methods["Embed"], changed))

    @overload
    async def token_embeddings(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...) -> np.ndarray: ...

    @overload
    async def token_embeddings(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., batch_size: int = ...,
            model: Optional[str] = ...) -> List[np.ndarray]: ...

    async def token_embeddings(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Optional[str] = None, span: Span = None,
            before_norm: bool = False, batch_size: int = 4,
            model: Optional[str] = None
            ) -> Union[np.ndarray, List[np.ndarray]]:
        """As Client.token_embeddings."""
        return await self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_embeddings, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm))

    @overload
    async def token_states(  # type: ignore[overload-overlap]
            self, inputs: Single, *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...) -> TokenStates: ...

    @overload
    async def token_states(
            self, inputs: Iterable[Input], *, layer: Optional[int] = ...,
            truncate: Optional[str] = ..., span: Span = ...,
            before_norm: bool = ..., on_error: OnError = ...,
            batch_size: int = ..., model: Optional[str] = ...) -> List[TokenStates]: ...

    async def token_states(
            self, inputs: Inputs, *, layer: Optional[int] = None,
            truncate: Optional[str] = None, span: Span = None,
            before_norm: bool = False, on_error: OnError = None,
            batch_size: int = 4, model: Optional[str] = None
            ) -> Union[TokenStates, List[TokenStates]]:
        """As Client.token_states."""
        return await self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.token_states, model=self._name(model),
            batch_size=batch_size, layer=layer, truncate=truncate, span=span,
            before_norm=before_norm, on_error=on_error))

    @overload
    async def tokenize(  # type: ignore[overload-overlap]
            self, inputs: Single, *, batch_size: int = ...,
            model: Optional[str] = ...) -> TokenizedText: ...

    @overload
    async def tokenize(
            self, inputs: Iterable[Input], *, batch_size: int = ...,
            model: Optional[str] = ...) -> List[TokenizedText]: ...

    async def tokenize(
            self, inputs: Inputs, *, batch_size: int = 64,
            model: Optional[str] = None
            ) -> Union[TokenizedText, List[TokenizedText]]:
        """As Client.tokenize."""
        return await self._run(_method_jobs.one_or_all(
            inputs, _method_jobs.tokenize, model=self._name(model),
            batch_size=batch_size))

    async def inspect_positions(
            self, first_row: int = 0, row_count: int = 0, *,
            cosine: bool = False, values: bool = False,
            model: Optional[str] = None) -> PositionReport:
        """As Client.inspect_positions."""
        return await self._run(_method_jobs.inspect_positions(
            model=self._name(model), first_row=first_row,
            row_count=row_count, cosine=cosine, values=values))

    async def models(self) -> List[encoder_pb2.Model]:
        """The models of the server, the default one first."""
        return await self._run(_method_jobs.models())

    async def model(self, name: Optional[str] = None) -> encoder_pb2.Model:
        """Sizes, limits and prompts of one model. None: the client's."""
        return await self._run(_method_jobs.model(self._name(name)))

    async def health(self, service: str = "") -> str:
        """"SERVING", "NOT_SERVING" or "UNKNOWN". Empty: the whole server."""
        return await self._run(_method_jobs.health(service))

    async def _run(self, job: _method_jobs.Job[_method_jobs.T]
                   ) -> _method_jobs.T:
        return await _run_asyncio.run_job(job, self._methods, self._timeout,
                                          self._calls_in_flight)
