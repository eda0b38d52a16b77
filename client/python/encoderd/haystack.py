"""encoderd in place of another embedder of Haystack.

    pip install 'encoderd[haystack]'

    indexing.add_component("embedder", EncoderdDocumentEmbedder(truncate="end"))
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Union

from encoderd._integration import client_of, missing, one_text, to_config
from encoderd.client import Client

try:
    from haystack import Document, component, default_to_dict
except ImportError:
    raise missing("haystack", "haystack-ai") from None


class _Embedder:
    """client: a Client, or the target of one (None: ENCODERD_TARGET, else
    localhost:8400). options: of Client.encode, for every call; its errors are
    raised. A stored pipeline holds target, model and options; TLS and tokens
    come from the environment."""

    def __init__(self, client: Union[Client, str, None] = None, **options: Any):
        self._config = to_config(client, options)
        self._client = client_of(client)
        self._options = options

    def to_dict(self) -> Dict[str, Any]:
        return dict(default_to_dict(self, **self._config))

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> Any:
        stored = data["init_parameters"]
        return cls(stored["target"], **stored["options"])


@component
class EncoderdTextEmbedder(_Embedder):
    @component.output_types(embedding=List[float])  # type: ignore
    def run(self, text: str) -> Dict[str, Any]:
        """embedding: D floats, by Client.encode_query."""
        found = self._client.encode_query(one_text(text), **self._options)
        return {"embedding": found.tolist()}


@component
class EncoderdDocumentEmbedder(_Embedder):
    @component.output_types(documents=List[Document])  # type: ignore
    def run(self, documents: List[Document]) -> Dict[str, Any]:
        """The documents with their embedding, by Client.encode_document."""
        texts = [document.content or "" for document in documents]
        found = self._client.encode_document(texts, **self._options).tolist()
        return {"documents": [dataclasses.replace(document, embedding=vector)
                              for document, vector in zip(documents, found)]}
