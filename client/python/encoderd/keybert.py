"""encoderd as the embedder of KeyBERT and of BERTopic, which take no Client:
given one, they load a model from the Hub without a word.

    pip install 'encoderd[keybert]'     # or 'encoderd[bertopic]'

    KeyBERT(model=EncoderdEmbedder("localhost:8400"))
    BERTopic(embedding_model=EncoderdEmbedder("localhost:8400"))
"""

from __future__ import annotations

from typing import Any, List, Union

import numpy as np

from encoderd._integration import client_of, missing
from encoderd.client import Client

_BASES: List[Any] = []  # each package asks for its own class
try:
    from keybert.backend import BaseEmbedder as _OfKeyBert
    _BASES.append(_OfKeyBert)
except ImportError:
    pass
try:
    from bertopic.backend import BaseEmbedder as _OfBertopic
    _BASES.append(_OfBertopic)
except ImportError:
    pass
if not _BASES:
    raise missing("keybert", "keybert or bertopic")


class EncoderdEmbedder(*_BASES):  # type: ignore[misc]
    """The BaseEmbedder of KeyBERT and BERTopic, computed by an encoderd."""

    def __init__(self, client: Union[Client, str, None] = None,
                 **options: Any):
        """client: a Client, or the target of one (None: ENCODERD_TARGET, else
            localhost:8400).
        options: of Client.encode, for every call, such as truncate="end".
        """
        super().__init__()
        self.embedding_model = client_of(client)
        self.options = options

    def embed(self, documents: Any, verbose: bool = False) -> np.ndarray:
        """float32 [n, D] of n documents or words, by Client.encode, whose
        errors are raised. verbose: with a progress bar."""
        found: np.ndarray = self.embedding_model.encode(
            documents, show_progress_bar=bool(verbose), **self.options)
        return found
