"""Members of SentenceTransformer that ask no server; both clients have them."""

from __future__ import annotations

from typing import Any, Dict

from encoderd._client_base import ClientBase
from encoderd._signatures import methods_of
from encoderd._similarity import check_name, similarity


class ModelCardData:
    """Where evaluators of sentence-transformers leave their metrics; nothing
    is kept, since a server's model has no card here."""

    def set_evaluation_metrics(self, evaluator: Any, metrics: Dict[str, Any],
                               epoch: int = 0, step: int = 0) -> None:
        """Does nothing; the evaluator returns the same metrics."""


_REMEDIES = {
    "max_seq_length": "start the server with --max_len, or cut at its limit "
                      'with truncate="end"',
    "prompts": "pass prompt= or prompt_name= with each call",
    "default_prompt_name": "pass prompt_name= with each call",
    "truncate_dim": "pass truncate_dim= with each call",
}


def read_only(name: str) -> AttributeError:
    """Raised where a property that the server answers is set."""
    return AttributeError(f"{name} is the server's and cannot be set here; "
                          f"{_REMEDIES[name]}")


@methods_of("Client")  # of AsyncClient too
class ModelMembers(ClientBase):
    """What code for a SentenceTransformer expects besides encode()."""

    _similarity_fn_name = "cosine"

    @property
    def similarity_fn_name(self) -> str:
        """"cosine" (unless another is set), "dot", "euclidean" or
        "manhattan": what similarity() computes. ValueError for another.

        What the model's own files name (similarity_fn_name of
        config_sentence_transformers.json) stays on the server: set it here.
        """
        return self._similarity_fn_name

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: Any) -> None:
        self._similarity_fn_name = (
            "cosine" if name is None else check_name(name))

    @property
    def truncate_dim(self) -> None:
        """None: a vector is cut only where a call says so (truncate_dim=).
        AttributeError where it is set."""
        return None

    @truncate_dim.setter
    def truncate_dim(self, value: Any) -> None:
        raise read_only("truncate_dim")

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Scores of all pairs, float32 [n, m]: the greater, the more similar;
        distances are negative. A torch tensor where torch is installed, as in
        sentence-transformers; else a numpy array. Asks nothing of the server.

        embeddings1, embeddings2: [n, D] and [m, D] (or [D]): arrays, tensors,
            lists, columns or tables of numbers, or an EmbedResult, whose int8
            or uint8 with scales become floats first. An empty list has no
            rows: n or m is 0.

        An input without a vector (on_error=) scores -inf, so it ranks last: a
        row that is NaN throughout, a row of zeros in an int8 array, and a row
        of an EmbedResult that has an error. A row of zeros in a float array,
        from on_error="zero", is a vector like any other: its cosine is 0.

        Raises ValueError for other shapes; TypeError for texts, for complex
        numbers, for gaps (None, NaN, masked values) between vectors, and for
        quantized values whose scores would mean nothing: uint8, int8 in a
        column or a table, and an EmbedResult of bytes without scales. An int8
        array is read as values; the packed bits of precision="binary" have
        the same type: unpack those first.
        """
        return similarity(self._similarity_fn_name, embeddings1, embeddings2,
                          pairwise=False)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Scores of each row of embeddings1 and the same row of embeddings2,
        float32 [n]; else as similarity()."""
        return similarity(self._similarity_fn_name, embeddings1, embeddings2,
                          pairwise=True)

    @property
    def device(self) -> Any:
        """Where vectors arrive: torch.device("cpu"), or "cpu" where torch is
        not installed. The server computes on its own (Model.device)."""
        try:
            import torch
        except ImportError:
            return "cpu"
        return torch.device("cpu")

    @property
    def model_card_data(self) -> ModelCardData:
        """For evaluators: takes their metrics and keeps none."""
        return ModelCardData()

    def eval(self) -> Any:
        """The client itself: a server never trains."""
        return self

    def _settings(self) -> Dict[str, Any]:
        return {"similarity_fn_name": self._similarity_fn_name}
