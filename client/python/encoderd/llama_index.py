"""encoderd in place of another embedding model of LlamaIndex.

    pip install 'encoderd[llama-index]'

    Settings.embed_model = EncoderdEmbedding("localhost:8400", truncate="end")
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Union

from encoderd._integration import client_of, missing, to_config
from encoderd.client import Client

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr
except ImportError:
    raise missing("llama_index", "llama-index-core") from None


class EncoderdEmbedding(BaseEmbedding):  # type: ignore[misc, unused-ignore]
    """LlamaIndex's BaseEmbedding, computed by an encoderd. Each vector is a
    list of D floats; errors are those of Client.encode.

    target: the address that is dialed. options: of the constructor, and the
    client's model. to_dict() has both, by which LlamaIndex's caches tell
    vectors apart and of which from_dict() makes it again; TLS and tokens then
    come from the environment.
    """

    target: str
    options: Dict[str, Any]
    _client: Client = PrivateAttr()

    def __init__(self, client: Union[Client, str, None] = None, *,
                 embed_batch_size: int = 1024, **options: Any):
        """client: a Client, or the target of one (None: ENCODERD_TARGET, else
            localhost:8400).
        embed_batch_size: texts that LlamaIndex hands over at a time.
        options: of Client.encode, for every call, such as truncate="end"."""
        client = client_of(client)
        options = to_config(client, options)["options"]
        super().__init__(
            model_name="encoderd", embed_batch_size=embed_batch_size,
            target=client._methods.link.target,
            # Of an array, as ranges= may be: JSON, and every value in str().
            options={name: value.tolist() if hasattr(value, "tolist")
                     else value for name, value in options.items()})
        self._client = client

    @classmethod
    def from_dict(cls, data: Dict[str, Any], **kwargs: Any
                  ) -> EncoderdEmbedding:
        stored = {**data, **kwargs}
        found = cls(stored["target"], **stored["options"],
                    embed_batch_size=stored["embed_batch_size"])
        found.num_workers = stored.get("num_workers")
        return found

    def __setstate__(self, state: Dict[str, Any]) -> None:
        # LlamaIndex's own calls __init__ with every field by its name.
        BaseModel.__setstate__(self, state)

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

    async def _aget_text_embeddings(self, texts: List[str]
                                    ) -> List[List[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
