"""What every encoderd client starts with, the C++ client too: the figures of
client/client_settings.json."""

from __future__ import annotations

import importlib.resources
import json

_READ = json.loads((importlib.resources.files("encoderd")
                    / "client_settings.json").read_text(encoding="utf-8"))
TEXTS_PER_CALL: int = _READ["texts_per_call"]
# Of token_states, whose answers are as large as their tokens.
TEXTS_PER_ENCODE_CALL: int = _READ["texts_per_encode_call"]
# A call is also closed once it carries this many bytes, so that it stays
# under the server's message limit.
BYTES_PER_CALL: int = _READ["bytes_per_call"]
CALLS_IN_FLIGHT: int = _READ["calls_in_flight"]
STREAM_CALLS_IN_FLIGHT: int = _READ["stream_calls_in_flight"]
TIMEOUT = float(_READ["timeout_s"])
MAX_ANSWER_BYTES: int = _READ["max_answer_bytes"]
# gRPC sends a longer request once: it would try one that is too large for the
# server again and again, not seeing that this is no full queue. Only a single
# input is as long.
RETRY_BUFFER_BYTES: int = _READ["retry_buffer_bytes"]
KEEPALIVE_TIME_MS: int = _READ["keepalive_time_ms"]
# A server that was restarted is found again soon. The least is the time for one
# attempt to connect: TCP, TLS and HTTP/2 take several round trips.
INITIAL_RECONNECT_BACKOFF_MS: int = _READ["initial_reconnect_backoff_ms"]
MIN_RECONNECT_BACKOFF_MS: int = _READ["min_reconnect_backoff_ms"]
MAX_RECONNECT_BACKOFF_MS: int = _READ["max_reconnect_backoff_ms"]
# gRPC looks a name up again when a connection ends, by default not within 30 s:
# until then no call would reach what replaced all servers known.
MIN_DNS_INTERVAL_MS: int = _READ["min_dns_interval_ms"]
