"""Client of encoderd: text to embeddings over gRPC.

    import encoderd

    with encoderd.Client("localhost:8400") as client:
        vectors = client.encode(["first text", "second text"])  # [2, D]

See Client for everything it can do and EncoderdError for what can go wrong;
Server starts a server on this machine, where the package carries the program.
"""

from encoderd._server_process import ServerStartError
from encoderd._target import DEFAULT_TARGET
from encoderd.async_client import AsyncClient
from encoderd.client import Client
from encoderd.errors import (DeadlineExceededError, EncoderdError,
                             InputTooLongError, InvalidInputError,
                             NotFoundError, QueueFullError, ServerFaultError,
                             UnauthenticatedError, UnavailableError)
from encoderd.inputs import TokenIds
from encoderd.positions import PositionReport
from encoderd.results import (Embedding, EmbedResult, TokenizedText,
                              TokenizedTexts, TokenStates)
from encoderd.server import Server

__version__ = "0.1.0"
__all__ = [
    "DEFAULT_TARGET", "AsyncClient", "Client", "DeadlineExceededError",
    "EmbedResult", "Embedding", "EncoderdError", "InputTooLongError",
    "InvalidInputError", "NotFoundError", "PositionReport", "QueueFullError",
    "Server", "ServerFaultError", "ServerStartError", "TokenIds",
    "TokenStates", "TokenizedText", "TokenizedTexts", "UnauthenticatedError",
    "UnavailableError",
]
