"""_encode_blocking for asyncio."""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, overload

import numpy as np

from encoderd import _method_jobs, _run_asyncio, _sentence_transformers
from encoderd._client_settings import TEXTS_PER_CALL
from encoderd._model_members import ModelMembers, read_only
from encoderd._signatures import (Inputs, OnErrorOfEncode, OutputValue, Pooling,
                                  Precision, Truncate, methods_of, one_of)
from encoderd.errors import EncoderdError
from encoderd.inputs import hides_frames
from encoderd.v1 import encoder_pb2


@methods_of("AsyncClient")
class AsyncEncodeMethods(ModelMembers):
    """The members of SentenceTransformer, to be awaited."""

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
            sentences: Optional[Inputs] = ..., truncate: Truncate = ...,
            windows: Optional[int] = ..., dimensions: int = ...,
            pooling: Pooling = ..., ranges: Any = ...,
            on_error: OnErrorOfEncode = ..., fingerprint: str = ...,
            model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> np.ndarray: ...

    @overload
    async def encode(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = TEXTS_PER_CALL,
            show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None, *,
            sentences: Optional[Inputs] = None, truncate: Truncate = None,
            windows: Optional[int] = None, dimensions: int = 0,
            pooling: Pooling = None, ranges: Any = None,
            on_error: OnErrorOfEncode = None, fingerprint: str = "",
            model: Optional[str] = None,
            timeout: Optional[float] = None) -> Any: ...

    async def encode(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = TEXTS_PER_CALL,
            show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None, *,
            sentences: Optional[Inputs] = None, truncate: Truncate = None,
            windows: Optional[int] = None, dimensions: int = 0,
            pooling: Pooling = None, ranges: Any = None,
            on_error: OnErrorOfEncode = None, fingerprint: str = "",
            model: Optional[str] = None,
            timeout: Optional[float] = None) -> Any:
        """As Client.encode."""
        return await self._run(_sentence_transformers.encode(
            "", one_of(inputs, sentences, pool), prompt_name=prompt_name,
            prompt=prompt, batch_size=batch_size,
            show_progress_bar=show_progress_bar, output_value=output_value,
            precision=precision, convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim, truncate=truncate, windows=windows,
            dimensions=dimensions, pooling=pooling, ranges=ranges,
            on_error=on_error, fingerprint=fingerprint,
            model=self._name(model)), timeout)

    async def encode_query(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = TEXTS_PER_CALL,
            show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None,
            **options: Any) -> Any:
        """As Client.encode_query."""
        return await self._encode_task(
            "query", inputs, pool, options, prompt_name=prompt_name,
            prompt=prompt, batch_size=batch_size,
            show_progress_bar=show_progress_bar, output_value=output_value,
            precision=precision, convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim)

    async def encode_document(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = TEXTS_PER_CALL,
            show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None,
            **options: Any) -> Any:
        """As Client.encode_document."""
        return await self._encode_task(
            "document", inputs, pool, options, prompt_name=prompt_name,
            prompt=prompt, batch_size=batch_size,
            show_progress_bar=show_progress_bar, output_value=output_value,
            precision=precision, convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim)

    async def get_embedding_dimension(self) -> int:
        """As Client.get_embedding_dimension."""
        return (await self._model_info()).dimensions

    async def get_sentence_embedding_dimension(self) -> int:
        """The older name of get_embedding_dimension()."""
        return await self.get_embedding_dimension()

    @property
    async def max_seq_length(self) -> int:
        """As Client.max_seq_length: `await client.max_seq_length`."""
        return (await self._model_info()).max_len

    @max_seq_length.setter
    def max_seq_length(self, value: Any) -> None:
        raise read_only("max_seq_length")

    @property
    async def prompts(self) -> Dict[str, str]:
        """As Client.prompts: `await client.prompts`."""
        return dict((await self._model_info()).prompts)

    @prompts.setter
    def prompts(self, value: Any) -> None:
        raise read_only("prompts")

    @property
    async def default_prompt_name(self) -> Optional[str]:
        """As Client.default_prompt_name, to be awaited."""
        return (await self._model_info()).default_prompt_name or None

    @default_prompt_name.setter
    def default_prompt_name(self, value: Any) -> None:
        raise read_only("default_prompt_name")

    async def _model_info(self) -> encoder_pb2.Model:
        return await self._run(_method_jobs.model(self._model))

    async def _encode_task(self, task: str, inputs: Any, pool: Any,
                           options: Dict[str, Any], **arguments: Any) -> Any:
        timeout = options.pop("timeout", None)
        sentences = options.pop("sentences", None)
        model = self._name(options.pop("model", None))
        return await self._run(_sentence_transformers.encode(
            task, one_of(inputs, sentences, pool, f"encode_{task}"),
            model=model, **arguments, **options), timeout)

    async def _run(self, job: _method_jobs.Job[_method_jobs.T],
                   timeout: Optional[float] = None) -> _method_jobs.T:
        try:
            return await _run_asyncio.run_job(
                job, self._methods, self._limit(timeout),
                self._calls_in_flight)
        except (EncoderdError, TypeError, ValueError) as error:
            if hides_frames(error):
                raise error.with_traceback(None) from None
            raise
