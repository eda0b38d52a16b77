"""encoderd in place of another embedding function of Chroma.

    pip install 'encoderd[chroma]'

    collection = chromadb.Client().create_collection(
        "texts", embedding_function=EncoderdEmbeddingFunction(truncate="end"))
"""

from __future__ import annotations

from typing import Any, Dict, List, Union

import numpy as np

from encoderd._integration import client_of, missing, to_config
from encoderd.client import Client

try:
    from chromadb.api.types import Documents, EmbeddingFunction
    from chromadb.utils.embedding_functions import register_embedding_function
except ImportError:
    raise missing("chroma", "chromadb") from None


@register_embedding_function
class EncoderdEmbeddingFunction(EmbeddingFunction[Documents]):  # type: ignore
    """Chroma's EmbeddingFunction: n arrays, float32 [D]. client: a Client, or
    the target of one (None: ENCODERD_TARGET, else localhost:8400). options: of
    Client.encode, for every call; its errors are raised. A collection stores
    target, model and options; TLS and tokens come from the environment. Import
    this module before such a collection is opened."""

    def __init__(self, client: Union[Client, str, None] = None, **options: Any):
        self._config = to_config(client, options)
        self._client = client_of(client)
        self._options = options

    def __call__(self, input: Documents) -> Any:
        """By Client.encode_document."""
        return list(self._client.encode_document(input, **self._options))

    def embed_query(self, input: Documents) -> List[np.ndarray]:
        """By Client.encode_query."""
        return list(self._client.encode_query(input, **self._options))

    @staticmethod
    def name() -> str:
        return "encoderd"

    def default_space(self) -> Any:
        return "cosine"

    def get_config(self) -> Dict[str, Any]:
        return self._config

    @staticmethod
    def build_from_config(config: Dict[str, Any]) -> EncoderdEmbeddingFunction:
        return EncoderdEmbeddingFunction(config["target"], **config["options"])
