"""encoderd in place of another embedding model of LlamaIndex.

    pip install 'encoderd[llama-index]'

    Settings.embed_model = EncoderdEmbedding("localhost:8400", truncate="end")
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Union

from encoderd._integration import Remade, client_of, missing, to_config
from encoderd.client import Client

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import PrivateAttr
except ImportError:
    raise missing("llama_index", "llama-index-core") from None


class EncoderdEmbedding(Remade, BaseEmbedding):  # type: ignore
    """LlamaIndex's BaseEmbedding, computed by an encoderd: lists of D floats.
    to_dict() has target and options; TLS and tokens are the environment's."""

    target: str
    options: Dict[str, Any]  # and the client's model
    _client: Client = PrivateAttr()

    def __init__(self, client: Union[Client, str, None] = None, *,
                 embed_batch_size: int = 1024, **options: Any):
        """client: a Client, or the target of one (None: ENCODERD_TARGET, else
        localhost:8400). embed_batch_size: texts that LlamaIndex hands over at
        a time. options, for every call, and errors: those of Client.encode."""
        client = client_of(client)
        config = to_config(client, options, dialed=True)
        super().__init__(model_name="encoderd",
                         embed_batch_size=embed_batch_size, **config)
        self._client = client

    def _get_query_embedding(self, query: str) -> List[float]:
        return list(self._client.encode_query(query, **self.options).tolist())

    def _get_text_embedding(self, text: str) -> List[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: List[str]) -> List[List[float]]:
        return list(self._client.encode_document(
            texts, **self.options).tolist())

    async def _aget_query_embedding(self, query: str) -> List[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> List[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: List[str]) -> Any:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
