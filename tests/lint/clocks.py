"""Intervals and waits follow a clock that nobody sets."""

import re

# What reads the wall clock, or waits by it as Abseil's locks do.
WALL = re.compile(r"\b(?:absl::Now\(|system_clock\b|(?:Await|Wait)With"
                  r"|LockWhenWith)")
# Where a time leaves the process or comes from outside.
ALLOWED = {
    "engine/base/steady_time.h", "client/cpp/steady_time.h",  # their first value
    "server/base/log.cc",           # a line's time
    "server/security/secrets.cc",   # a certificate's validity
    "server/server.cc",             # gRPC's deadlines
    "server/trace/otlp.cc", "client/cpp/grpc_status.cc",
    "client/cpp/encoderctl/load.cc",
    "server/trace/tracer.cc",       # a span's times
}


def steady_time(tree):
    """engine, server and client measure and wait by SteadyNow."""
    return [f"{path}:{number}: the wall clock may be set: SteadyNow "
            "(steady_time.h) for intervals and waits"
            for path in tree.cxx()
            if path.startswith(("engine/", "server/", "client/"))
            and path not in ALLOWED
            for number, line in tree.lines(path)
            if WALL.search(line.split("//")[0])]
