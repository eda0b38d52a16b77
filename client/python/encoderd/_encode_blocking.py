"""What Client has of SentenceTransformer: encode() and what goes with it."""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, overload

import numpy as np

from encoderd import _method_jobs, _run_blocking, _sentence_transformers
from encoderd._model_members import ModelMembers, read_only
from encoderd._option_checks import is_of_package
from encoderd._signatures import (Inputs, OnErrorOfEncode, OutputValue,
                                  Precision, one_of)
from encoderd.errors import EncoderdError
from encoderd.v1 import encoder_pb2


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
            sentences: Optional[Inputs] = ..., truncate: Optional[str] = ...,
            windows: Optional[int] = ..., dimensions: int = ...,
            pooling: Optional[str] = ..., ranges: Any = ...,
            on_error: OnErrorOfEncode = ..., model: Optional[str] = ...,
            timeout: Optional[float] = ...) -> np.ndarray: ...

    @overload
    def encode(
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
            windows: Optional[int] = None, dimensions: int = 0,
            pooling: Optional[str] = None, ranges: Any = None,
            on_error: OnErrorOfEncode = None, model: Optional[str] = None,
            timeout: Optional[float] = None) -> Any: ...

    def encode(
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
            windows: Optional[int] = None, dimensions: int = 0,
            pooling: Optional[str] = None, ranges: Any = None,
            on_error: OnErrorOfEncode = None, model: Optional[str] = None,
            timeout: Optional[float] = None) -> Any:
        """Vectors, as SentenceTransformer.encode gives them: for a list [n, D],
        for a single str [D].

        inputs: a str, or an iterable (a list, an array, a column of a table,
            a generator, ...) of str, (str, str) tuples and TokenIds. An empty
            list gives [0, D].
        prompt_name: a prompt of the model, put before each text. A pair of
            texts gets no prompt: one in a list that asks for a prompt, here
            or by `prompt`, is a ValueError. A default prompt of the model
            goes before the texts of a list and leaves its pairs alone.
        prompt: a text put before each text; prompt_name is then ignored.
            None: the model's default prompt, if it has one.
        batch_size: texts of one call; split where the server takes fewer
            (--max_inputs_per_request, 1024). Several calls are in flight
            together.
        show_progress_bar: on standard error; tqdm's, if it is installed.
            None: if the logger "encoderd" is at INFO or DEBUG.
        output_value: "token_embeddings": the states of every token, [n, H] for
            each text, in a list. None: a dict for each text: input_ids,
            token_type_ids, attention_mask, token_embeddings,
            sentence_embedding; nothing is padded. With these two,
            normalize_embeddings has no effect, as there.
        precision: also "float16". int8 and uint8 take the range of each
            dimension from the list at hand, or from `ranges`; of fewer than
            100 texts with a warning (logger "encoderd").
        convert_to_numpy: False: a list of torch tensors.
        convert_to_tensor: True: one torch tensor. Token embeddings and dicts
            hold numpy arrays unless one of these two asks for tensors.
        device, chunk_size: ignored: the server has its own. pool: must be None.
        normalize_embeddings: to length 1. False: as the model was made for.
        truncate_dim: keep this many leading values of each vector; normalized
            again only if normalize_embeddings asks for it. No effect with
            output_value="token_embeddings", as in sentence-transformers.
        sentences: the older name of inputs.
        truncate: "start", "end": a text that is too long is cut there, as
            SentenceTransformer does (at the end) in silence; at the start the
            prompt is cut first. None: it raises InputTooLongError, unless
            `windows` takes it.
        windows: a text that is too long is read in windows that share this
            many tokens, and their vectors are averaged: before they are
            normalized, by weights of their tokens without special tokens; the
            mean is then normalized as asked for. A prompt is in the first
            alone. Not together with truncate. None: no windows.
        dimensions: as truncate_dim, but cut by the server, which normalizes
            again where the model does; 0: all.
        pooling: as in embed().
        ranges: [2, D], least and largest value of each dimension.
        on_error: None, "fail_request": the first bad input of the list (empty,
            too long, ...) raises; its place is EncoderdError.input_index.
            "zero": its row is 0 and a warning is logged (logger "encoderd");
            "per_input": its row is NaN; where the precision has none, as
            "zero". The others have their vectors. embed() also tells why.
        model: None: the client's.
        timeout: seconds for each call of the list, of which several wait for
            the server together (calls_in_flight); None: the client's;
            math.inf: no limit.

        Errors: those of the class. Nothing is returned of a list that raises.
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
            on_error=on_error, model=self._name(model)), timeout)

    def encode_query(
            self, inputs: Optional[Inputs] = None,
            prompt_name: Optional[str] = None, prompt: Optional[str] = None,
            batch_size: int = 64, show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None,
            **options: Any) -> Any:
        """encode() with the model's prompt "query", if it has one and neither
        prompt_name nor prompt is given; no prompt otherwise. options: the
        others of encode(), by name; sentences, too.

        ValueError where the model puts a default prompt before every text and
        has none of this name.
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
            batch_size: int = 64, show_progress_bar: Optional[bool] = None,
            output_value: OutputValue = "sentence_embedding",
            precision: Optional[Precision] = "float32",
            convert_to_numpy: bool = True, convert_to_tensor: bool = False,
            device: Any = None, normalize_embeddings: bool = False,
            truncate_dim: Optional[int] = None, pool: None = None,
            chunk_size: Optional[int] = None,
            **options: Any) -> Any:
        """encode() with the first prompt that the model has of "document",
        "passage" and "corpus"; else as encode_query()."""
        return self._encode_task(
            "document", inputs, pool, options, prompt_name=prompt_name,
            prompt=prompt, batch_size=batch_size,
            show_progress_bar=show_progress_bar, output_value=output_value,
            precision=precision, convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim)

    def get_embedding_dimension(self) -> int:
        """D, the values of a vector, as the server says it."""
        return self._model_info().dimensions

    def get_sentence_embedding_dimension(self) -> int:
        """The older name of get_embedding_dimension()."""
        return self.get_embedding_dimension()

    @property
    def max_seq_length(self) -> int:
        """The most tokens of one input, special tokens included, as the
        server says it (--max_len)."""
        return self._model_info().max_len

    @max_seq_length.setter
    def max_seq_length(self, value: Any) -> None:
        raise read_only("max_seq_length")

    @property
    def prompts(self) -> Dict[str, str]:
        """The model's prompts by name, as the server says them."""
        return dict(self._model_info().prompts)

    @prompts.setter
    def prompts(self, value: Any) -> None:
        raise read_only("prompts")

    @property
    def default_prompt_name(self) -> Optional[str]:
        """The prompt that the server puts before each text where no other is
        named; None: none."""
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
        except EncoderdError as error:  # without the frames of this package
            raise error.with_traceback(None) from None
        except (TypeError, ValueError) as error:
            if is_of_package(error):
                raise error.with_traceback(None) from None
            raise
