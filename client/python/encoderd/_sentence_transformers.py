"""encode() as SentenceTransformer.encode does it, in terms of _method_jobs."""

from __future__ import annotations

import itertools
import logging
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from encoderd import _method_jobs
from encoderd._client_settings import TEXTS_PER_ENCODE_CALL
from encoderd._method_jobs import Job
from encoderd._option_checks import (check_choice, text, true_or_false,
                                     whole_number, wrong_value)
from encoderd._quantize import (calibrate, check_ranges, quantize,
                                single_text, single_vector)
from encoderd._tensors import require_tensors
from encoderd.errors import EncoderdError, count_prompt, with_remedy
from encoderd.inputs import Input, as_list, check_all_prompted
from encoderd.results import EmbedResult

PRECISIONS = ("float32", "float16", "int8", "uint8", "binary", "ubinary")
BY_SCALE = ("int8", "uint8")
# Texts whose ranges say little of others; as in sentence-transformers.
FEW = 100
# Inputs without a vector that a warning names.
FIRST = 10

_LOGGER = logging.getLogger("encoderd")


def _prefixed(values: Sequence[Input], prompt: str) -> Sequence[Input]:
    """As the server does it: before texts, not before pairs or ids. An empty
    text stays empty, for the server to refuse. With an empty prompt, the
    values themselves."""
    if not prompt:
        return values
    return [prompt + value if isinstance(value, str) and value else value
            for value in values]


# Every SentenceTransformer has these; empty where its model says nothing.
EMPTY_PROMPTS = ("query", "document")
# Names of prompts that encode_query() and encode_document() look for.
TASKS = {"": (), "query": ("query",),
         "document": ("document", "passage", "corpus")}


def _prompt_of_task(task: str, model: str) -> Job[Tuple[Optional[str],
                                                        Optional[str]]]:
    """The first of the task's names that the model has a prompt of, and no
    text; or no name and the text "", which turns off a default prompt."""
    info = yield _method_jobs.get_model(model)
    for name in TASKS[task]:
        if info.prompts.get(name):
            return name, None
        if name in info.prompts:  # an empty one
            return None, ""
    return None, "" if info.default_prompt_name else None


def _prompt_of_embed(values: Sequence[Input], prompt: Optional[str],
                     prompt_name: Optional[str], model: str
                     ) -> Job[Tuple[Sequence[Input], str]]:
    """What to send, and the prompt that the server puts before it."""
    if prompt is None and prompt_name not in EMPTY_PROMPTS:
        return values, prompt_name or ""
    if prompt:
        check_all_prompted(values)
    info = yield _method_jobs.get_model(model)
    if prompt is None and prompt_name in info.prompts:
        return values, prompt_name or ""
    by_text = prompt is not None
    prompt = prompt or ""
    if not info.default_prompt_name:
        return _prefixed(values, prompt), ""
    for name, known in info.prompts.items():
        if known == prompt:
            return values, name
    wanted = (f"prompt={prompt!r}" if by_text
              else f"prompt_name={prompt_name!r}")
    raise wrong_value(
        f"this model puts its prompt {info.default_prompt_name!r} before "
        f"every text; {wanted} cannot replace it: use prompt_name "
        f"(available: {', '.join(sorted(info.prompts))})")


def _prompt_of_encode(values: Sequence[Input], prompt: Optional[str],
                      prompt_name: Optional[str], model: str
                      ) -> Job[Sequence[Input]]:
    """The texts behind their prompt: Encode and Tokenize put none."""
    by_default = prompt is None and prompt_name is None
    if prompt is None:
        info = yield _method_jobs.get_model(model)
        name = prompt_name or info.default_prompt_name
        if name in EMPTY_PROMPTS and name not in info.prompts:
            return values
        if name and name not in info.prompts:
            raise _method_jobs.unknown_prompt(name, info)
        prompt = info.prompts[name] if name else ""
    if prompt and not by_default:
        check_all_prompted(values)
    return _prefixed(values, prompt)


def _cut(vectors: np.ndarray, truncate_dim: int) -> np.ndarray:
    width = _method_jobs.width_of("truncate_dim", truncate_dim,
                                  vectors.shape[1])
    return np.ascontiguousarray(vectors[:, :width])


def _sentences(values: Sequence[Input], *, prompt: Optional[str],
               prompt_name: Optional[str], precision: str, normalize: bool,
               truncate_dim: Optional[int], dimensions: int,
               ranges: Optional[Any], model: str,
               on_error: Optional[str] = None, **rest: Any
               ) -> Job[np.ndarray]:
    given = values
    values, prompt_name = yield from _prompt_of_embed(
        values, prompt, prompt_name, model)
    prefixed = values is not given
    # A model that normalizes does so before sentence-transformers cuts, and
    # not again after it, unless told to. The server always does both: so a
    # mere cut is made here. Bits do not depend on the length.
    here = truncate_dim is not None and not (
        normalize or precision.endswith("binary"))
    quantize_here = precision in BY_SCALE and (here or ranges is None)
    if truncate_dim is not None and not here:
        dimensions = truncate_dim
    try:
        result = yield from _method_jobs.embed(
            values, model=model, dimensions=dimensions,
            precision="float32" if quantize_here else precision,
            normalize=True if normalize else None, prompt_name=prompt_name,
            ranges=None if quantize_here else ranges,
            on_error="per_input" if on_error == "zero" else on_error, **rest)
    except EncoderdError as error:
        if truncate_dim is not None and error.reason == "INVALID_OPTION":
            error.message = re.sub(r"^dimensions\b", "truncate_dim",
                                   error.message)
        count_prompt(error, prefixed)
        raise with_remedy(error, EMPTY_INPUT="drop it, or keep its row: "
                          'on_error="per_input" or on_error="zero"')
    for refused in result.errors.values():
        count_prompt(refused, prefixed)
    vectors = result.vectors
    if here and truncate_dim is not None:
        vectors = _cut(vectors, truncate_dim)
    if quantize_here:
        vectors = _levels(result, vectors, precision, ranges)
    if result.errors:
        if on_error == "zero":
            vectors[~result.ok] = 0
        _warn_of_errors(result.errors, vectors)
    return vectors


def _levels(result: EmbedResult, vectors: np.ndarray, precision: str,
            ranges: Optional[Any]) -> np.ndarray:
    """The vectors of `result`, perhaps cut, as int8 or uint8. ranges: None:
    their own."""
    levels = np.zeros(vectors.shape, precision)
    good = vectors[result.ok] if result.errors else vectors
    if len(good) == 0:
        return levels
    if ranges is None:
        if len(good) == 1:
            raise single_vector(precision, len(vectors),
                                next(iter(result.errors.values())))
        ranges = calibrate(good)
        if len(good) < FEW:
            _LOGGER.warning(
                "the ranges of precision=%r are those of %d texts; with "
                "fewer than %d they change much from list to list, and so "
                "do the levels: give ranges=, taken from a representative "
                "list", precision, len(good), FEW)
    levels[result.ok] = quantize(good, precision, ranges)
    return levels


def _warn_of_errors(errors: Dict[int, EncoderdError], vectors: np.ndarray
                    ) -> None:
    """errors: by the places of their rows, at least one."""
    places = [f"inputs[{place}]" for place in itertools.islice(errors, FIRST)]
    if len(errors) > FIRST:
        places.append(f"and {len(errors) - FIRST} more")
    first, error = next(iter(errors.items()))
    _LOGGER.warning(
        "%d of %d inputs have no vector; their rows are all %s: %s; the "
        "first: %s", len(errors), len(vectors),
        "NaN" if np.isnan(vectors[first]).all() else "zeros",
        ", ".join(places), error)


def _everything(values: Sequence[Input], *, prompt: Optional[str],
                prompt_name: Optional[str], truncate_dim: Optional[int],
                model: str, batch_size: int, pooling: Optional[str],
                show_progress: bool) -> Job[List[Dict[str, np.ndarray]]]:
    """output_value=None: a dict for each text."""
    try:
        vectors = yield from _sentences(
            values, prompt=prompt, prompt_name=prompt_name,
            precision="float32", normalize=False, truncate_dim=truncate_dim,
            dimensions=0, ranges=None, model=model, batch_size=batch_size,
            pooling=pooling, show_progress=show_progress)
    except EncoderdError as error:
        raise with_remedy(error, EMPTY_INPUT="drop it",
                          INPUT_TOO_LONG="shorten it: output_value=None takes "
                          "neither truncate nor windows")
    texts = yield from _prompt_of_encode(values, prompt, prompt_name, model)
    states = yield from _method_jobs.token_embeddings(
        texts, model=model, batch_size=min(batch_size, TEXTS_PER_ENCODE_CALL))
    tokens = yield from _method_jobs.tokenize(
        texts, model=model, batch_size=batch_size)
    return [{"input_ids": np.array(token.ids, np.int64),
             "token_type_ids": np.array(token.segment_ids, np.int64),
             "attention_mask": np.ones(len(token.ids), np.int64),
             "token_embeddings": state, "sentence_embedding": vector}
            for token, state, vector in zip(tokens, states, vectors)]


def _check_others(output_value: Optional[str], given: Dict[str, Any]) -> None:
    """What goes with output_value "sentence_embedding" only, but for what
    sentence-transformers takes no notice of either."""
    for name, value in given.items():
        if value:
            raise wrong_value(f"{name} goes with output_value "
                              f"'sentence_embedding', not {output_value!r}")


def _check(prompt_name: Optional[str], prompt: Optional[str], precision: str,
           truncate_dim: Optional[int], dimensions: int,
           on_error: Optional[str], output_value: Optional[str],
           truncate: Optional[str], fingerprint: str) -> None:
    """Options that the server would not name as the caller does."""
    check_choice("output_value", output_value,
                 ("sentence_embedding", "token_embeddings"))
    if output_value is None and truncate not in (None, "none"):
        raise wrong_value("truncate needs an output_value: with None, the ids "
                          "would not be those of the cut text")
    check_choice("precision", precision, PRECISIONS)
    if dimensions and truncate_dim is not None:
        raise wrong_value("give dimensions or truncate_dim, not both")
    if (truncate_dim is not None
            and whole_number("truncate_dim", truncate_dim) < 1):
        raise wrong_value(f"truncate_dim is {truncate_dim}; it must be at "
                          "least 1")
    for name, value in (("prompt_name", prompt_name), ("prompt", prompt)):
        if value is not None:
            text(name, value)
    if prompt_name == "":
        raise wrong_value("prompt_name is empty; name a prompt of the model, "
                          "or leave it out")
    check_choice("on_error", on_error, ("fail_request", "per_input", "zero"))
    text("fingerprint", fingerprint)


def encode(task: str, inputs: Any, *, prompt_name: Optional[str],
           prompt: Optional[str], batch_size: int,
           show_progress_bar: Optional[bool], output_value: Optional[str],
           precision: Optional[str], convert_to_numpy: bool,
           convert_to_tensor: bool, normalize_embeddings: bool,
           truncate_dim: Optional[int], truncate: Optional[str] = None,
           windows: Optional[int] = None, dimensions: int = 0,
           pooling: Optional[str] = None, ranges: Optional[Any] = None,
           on_error: Optional[str] = None, fingerprint: str = "", model: str
           ) -> Job[Any]:
    """Client.encode says what each argument means. task: of TASKS, empty for
    encode() itself."""
    precision = "float32" if precision is None else precision
    for name, value in (("show_progress_bar", show_progress_bar),
                        ("convert_to_numpy", convert_to_numpy),
                        ("convert_to_tensor", convert_to_tensor),
                        ("normalize_embeddings", normalize_embeddings)):
        true_or_false(name, value)
    batch_size = whole_number("batch_size", batch_size)
    _check(prompt_name, prompt, precision, truncate_dim, dimensions, on_error,
           output_value, truncate, fingerprint)
    if output_value != "sentence_embedding":
        _check_others(output_value, {
            "precision": precision != "float32", "dimensions": dimensions,
            "ranges": ranges is not None, "windows": windows is not None,
            "on_error": on_error is not None, "fingerprint": fingerprint,
            "pooling": pooling and output_value == "token_embeddings"})
    # Before anything is computed.
    tensor = (require_tensors() if convert_to_tensor or not convert_to_numpy
              else None)
    if show_progress_bar is None:
        level = _LOGGER.getEffectiveLevel()
        show_progress_bar = level in (logging.INFO, logging.DEBUG)
    single = _method_jobs.is_single(inputs)
    values = as_list(inputs)
    if precision in BY_SCALE and output_value == "sentence_embedding":
        if ranges is not None:
            check_ranges(ranges, truncate_dim or dimensions or None)
        elif len(values) == 1:
            raise single_text(precision)
    if task and prompt is None and prompt_name is None:
        prompt_name, prompt = yield from _prompt_of_task(task, model)
    found: Any
    if output_value == "sentence_embedding":
        found = yield from _sentences(
            values, prompt=prompt, prompt_name=prompt_name,
            precision=precision, normalize=bool(normalize_embeddings),
            truncate_dim=truncate_dim, dimensions=dimensions, ranges=ranges,
            model=model, batch_size=batch_size, truncate=truncate,
            windows=windows, pooling=pooling, on_error=on_error,
            fingerprint=fingerprint, show_progress=show_progress_bar)
    elif output_value == "token_embeddings":
        texts = yield from _prompt_of_encode(values, prompt, prompt_name,
                                             model)
        try:
            found = yield from _method_jobs.token_embeddings(
                texts, model=model,
                batch_size=min(batch_size, TEXTS_PER_ENCODE_CALL),
                truncate=truncate, show_progress=show_progress_bar)
        except EncoderdError as error:
            raise count_prompt(error, texts is not values)
    else:
        found = yield from _everything(
            values, prompt=prompt, prompt_name=prompt_name,
            truncate_dim=truncate_dim, model=model, batch_size=batch_size,
            pooling=pooling, show_progress=show_progress_bar)
    if tensor is not None:
        whole = convert_to_tensor and output_value == "sentence_embedding"
        found = tensor(found) if whole else [tensor(row) for row in found]
    return found[0] if single else found
