"""encoderd in place of another embedding model of LangChain.

    pip install 'encoderd[langchain]'

    embeddings = EncoderdEmbeddings("localhost:8400", truncate="end")
    store = InMemoryVectorStore(embeddings)
"""

from __future__ import annotations

from typing import Any, List, Union

from encoderd._integration import client_of, missing
from encoderd.client import Client

try:
    from langchain_core.embeddings import Embeddings
except ImportError:
    raise missing("langchain", "langchain-core") from None


class EncoderdEmbeddings(Embeddings):  # type: ignore[misc, unused-ignore]
    """LangChain's Embeddings, computed by an encoderd.

    Thread-safe; the awaited methods run in LangChain's executor.
    """

    def __init__(self, client: Union[Client, str, None] = None,
                 **options: Any):
        """client: a Client, or the target of one (None: ENCODERD_TARGET, else
            localhost:8400).
        options: of Client.encode, for every call, such as truncate="end".
        """
        self.client = client_of(client)
        self.options = options

    def embed_documents(self, texts: List[str]) -> List[List[float]]:
        """n lists of D floats, by Client.encode_document, whose errors are
        raised."""
        found: List[List[float]] = self.client.encode_document(
            texts, **self.options).tolist()
        return found

    def embed_query(self, text: str) -> List[float]:
        """D floats, by Client.encode_query, whose errors are raised."""
        found: List[float] = self.client.encode_query(
            text, **self.options).tolist()
        return found
