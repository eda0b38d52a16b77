"""What Client has of SentenceTransformer: encode() and what goes with it."""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, overload

import numpy as np

from encoderd import _method_jobs, _run_blocking, _sentence_transformers
from encoderd._client_settings import TEXTS_PER_CALL
from encoderd._model_members import ModelMembers, read_only
from encoderd._signatures import (Inputs, OnErrorOfEncode, OutputValue, Pooling,
                                  Precision, Truncate, methods_of, one_of)
from encoderd.errors import EncoderdError
from encoderd.inputs import hides_frames
from encoderd.v1 import encoder_pb2


@methods_of("Client")
class EncodeMethods(ModelMembers):
    """The members of SentenceTransformer, by blocking."""

    @overload
    def encode(
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
    def encode(
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

    def encode(
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
        """Embeds texts; arguments and results are those of
        SentenceTransformer.encode.

        Returns a numpy array: [n, D] for n inputs, [D] for a single str or
        TokenIds. D: the values of a vector (get_embedding_dimension(), or
        truncate_dim, or dimensions). The type by precision:

            "float32", "float16"   of that type, [n, D]
            "int8", "uint8"        of that type, [n, D]: levels of a range
            "binary", "ubinary"    int8, uint8 [n, D / 8] (rounded up): bits

        inputs: a str, or an iterable (a list, an array, a column of a table,
            a generator, ...) of str, (str, str) tuples and TokenIds. A tuple
            is a pair only inside a list: [("a", "b")] is one pair,
            ("a", "b") is two texts. An empty list returns [0, D].
        prompt_name: name of a prompt of the model, put before each text. If
            the call asks for a prompt, here or by `prompt`, a pair or
            TokenIds among the inputs is a ValueError, unless its text is
            empty (a model without prompts takes "query" and "document" as
            none). A default prompt of the model goes before the texts of a
            list, not before its pairs and TokenIds.
        prompt: a text put before each text; prompt_name is then ignored.
            None: the model's default prompt, if it has one.
        batch_size: texts in one call; split if the server takes fewer
            (--max_inputs_per_request, 1024). Several calls are in flight
            together.
        show_progress_bar: on standard error; tqdm's, if it is installed.
            None: if the logger "encoderd" is at INFO or DEBUG.
        output_value: "token_embeddings": a list with the states of each
            text's tokens, float32 [tokens, H]. None: a list with a dict for
            each text: input_ids, token_type_ids, attention_mask (int64
            [tokens]), token_embeddings, sentence_embedding; without padding.
            With these two, normalize_embeddings has no effect, as in
            sentence-transformers.
        precision: see above; None: "float32". int8 and uint8 take the range
            of each dimension from the inputs of this call, or from `ranges`;
            with fewer than 100 texts a warning is logged (logger
            "encoderd"), and a single text is a ValueError.
        convert_to_numpy: False: a list of torch tensors.
        convert_to_tensor: True: one torch tensor. Token embeddings and dicts
            hold numpy arrays unless one of these two asks for tensors.
        device, chunk_size: ignored; the server has its own. pool: only None.
        normalize_embeddings: True: to length 1. False: as the model does.
        truncate_dim: keep this many leading values of each vector; they are
            normalized again only if normalize_embeddings is True. No effect
            with output_value="token_embeddings", as in sentence-transformers.
        sentences: the older name of inputs.
        truncate: "start", "end": a text that is too long is cut there; at
            the start, its prompt is cut first. None, "none": it raises
            InputTooLongError, unless `windows` is given. The tokens of a
            prompt count. (SentenceTransformer cuts the end silently.)
        windows: a text that is too long is read in windows that share this
            many tokens, and their vectors are averaged before they are
            normalized, weighted by their tokens without special tokens. The
            mean is then normalized as requested. Only the first window has
            the prompt. Not together with truncate. None: no windows.
        dimensions: as truncate_dim, but cut by the server, which normalizes
            again if the model normalizes; 0: all.
        pooling: as in embed().
        ranges: [2, D], the least and the largest value of each dimension.
        on_error: None, "fail_request": the first bad input (empty, too long,
            ...) raises; its place is EncoderdError.input_index. Otherwise the
            other inputs have their vectors, and a warning (logger
            "encoderd") names the inputs without one. "per_input": their rows
            are NaN; 0 for int8, uint8 and bits, which have no NaN. "zero":
            their rows are 0. similarity() says how such rows score; embed()
            also tells why each failed.
        fingerprint: as in embed(), for vectors that are added to those of an
            earlier run. Only with output_value="sentence_embedding".
        model: None: the client's.
        timeout: seconds for each call of the list, of which several are
            processed together (calls_in_flight); None: the client's;
            math.inf: no limit.

        Raises TypeError or ValueError for a wrong argument or an input of the
        wrong type, before the first call; for an input that cannot take the
        prompt, before any is sent; for a wrong number in TokenIds, when its
        turn comes;
        InvalidInputError for a bad input (InputTooLongError if it is too long);
        NotFoundError for an unknown model or prompt; QueueFullError if the
        server stays busy; UnavailableError, DeadlineExceededError and
        UnauthenticatedError as their docstrings say; EncoderdError
        (FAILED_PRECONDITION) if the model of the vectors changes during the
        call, or is not that of `fingerprint`.
        If one input or call raises, the whole list returns nothing.
        """
        return self._run(_sentence_transformers.encode(
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

    def encode_query(
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
        """encode() with the model's prompt "query". Without such a prompt, no
        prompt is used; prompt_name or prompt overrides it. options: the
        other arguments of encode(), by name.

        Raises ValueError if the model has a default prompt and no prompt of
        this name.
        """
        return self._encode_task(
            "query", inputs, pool, options, prompt_name=prompt_name,
            prompt=prompt, batch_size=batch_size,
            show_progress_bar=show_progress_bar, output_value=output_value,
            precision=precision, convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim)

    def encode_document(
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
        """encode() with the model's prompt "document", "passage" or "corpus",
        the first that it has; otherwise as encode_query()."""
        return self._encode_task(
            "document", inputs, pool, options, prompt_name=prompt_name,
            prompt=prompt, batch_size=batch_size,
            show_progress_bar=show_progress_bar, output_value=output_value,
            precision=precision, convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim)

    def get_embedding_dimension(self) -> int:
        """D, the number of values in a vector, as the server reports it."""
        return self._model_info().dimensions

    def get_sentence_embedding_dimension(self) -> int:
        """The older name of get_embedding_dimension()."""
        return self.get_embedding_dimension()

    @property
    def max_seq_length(self) -> int:
        """The most tokens that one input may have, special tokens included, as
        the server reports it (--max_len)."""
        return self._model_info().max_len

    @max_seq_length.setter
    def max_seq_length(self, value: Any) -> None:
        raise read_only("max_seq_length")

    @property
    def prompts(self) -> Dict[str, str]:
        """The model's prompts by name, as the server reports them."""
        return dict(self._model_info().prompts)

    @prompts.setter
    def prompts(self, value: Any) -> None:
        raise read_only("prompts")

    @property
    def default_prompt_name(self) -> Optional[str]:
        """The prompt that the server puts before each text if a call names no
        other; None: no prompt."""
        return self._model_info().default_prompt_name or None

    @default_prompt_name.setter
    def default_prompt_name(self, value: Any) -> None:
        raise read_only("default_prompt_name")

    def _model_info(self) -> encoder_pb2.Model:
        return self._run(_method_jobs.model(self._model))

    def _encode_task(self, task: str, inputs: Any, pool: Any,
                     options: Dict[str, Any], **arguments: Any) -> Any:
        timeout = options.pop("timeout", None)
        sentences = options.pop("sentences", None)
        model = self._name(options.pop("model", None))
        return self._run(_sentence_transformers.encode(
            task, one_of(inputs, sentences, pool, f"encode_{task}"),
            model=model, **arguments, **options), timeout)

    def _run(self, job: _method_jobs.Job[_method_jobs.T],
             timeout: Optional[float] = None) -> _method_jobs.T:
        try:
            return _run_blocking.run_job(
                job, self._methods, self._limit(timeout),
                self._calls_in_flight)
        except (EncoderdError, TypeError, ValueError) as error:
            if hides_frames(error):
                raise error.with_traceback(None) from None
            raise
