"""Intervals and waits follow a clock that nobody sets."""

import re

# What reads the wall clock, or waits by it: Abseil's locks, some functions of
# the standard library, where the clock of high resolution is system_clock, and
# of POSIX.
WALL = re.compile(
    r"\b(?:absl::Now\(|(?:system|high_resolution)_clock\b"
    r"|(?:Await|Wait)With|LockWhenWith|(?:sleep|wait)_until\("
    r"|time\((?:nullptr|NULL|0|&)|gettimeofday\(|timespec_get\("
    r"|CLOCK_REALTIME|pthread_cond_timedwait\(|sem_timedwait\()")
# How often a file does, where a time leaves the process or comes from outside.
ALLOWED = {
    "server/base/steady_time.h": 1,     # the first value
    "client/cpp/steady_time.h": 1,      # the same
    "server/base/log.cc": 1,            # a line's time
    "server/security/secrets.cc": 1,    # a certificate's validity
    "server/server.cc": 2,              # gRPC's deadlines: of two shutdowns
    "server/trace/otlp.cc": 1,          # of an export
    "client/cpp/grpc_status.cc": 1,     # of a call
    "client/cpp/encoderctl/load.cc": 1,  # of a call
    "server/trace/tracer.cc": 1,        # a span's times
    # Certificates are valid until a wall time.
    "tests/integration/tls_test.cc": 1,
    "tests/unit/server/security/certificates_memory_test.cc": 1,
    "tests/unit/server/security/certificates_test.cc": 6,
    # About the wall clock itself, or Abseil's functions.
    "tests/support/tsan_libraries.cc": 3,
    "tests/support/wall_clock.cc": 3,
    "tests/unit/client/steady_time_test.cc": 1,
    "tests/unit/server/base/steady_time_test.cc": 1,
    "tests/unit/server/clock_step_test.cc": 3,
    "tests/unit/server/observe/process_test.cc": 1,  # a process's start
}
# Benchmarks are left out: nothing in them passes or fails by time.
FOLDERS = ("engine/", "server/", "client/", "tests/integration/",
           "tests/support/", "tests/unit/")
# gRPC counts a call's deadline by the wall clock, and tests make many calls.
DEADLINE = re.compile(r"absl::ToChronoTime\(absl::Now\(\)")


def steady_time(tree):
    """engine, server, client and tests measure and wait by SteadyNow."""
    found = []
    for path in tree.cxx():
        if not path.startswith(FOLDERS):
            continue
        hits = []
        for number, line in tree.lines(path):
            code = line.split("//")[0]
            if path.startswith("tests/"):
                code = DEADLINE.sub("", code)
            hits += [number for _ in WALL.findall(code)]
        if path not in ALLOWED:
            found += [f"{path}:{number}: the wall clock may be set: SteadyNow "
                      "(steady_time.h) for intervals and waits"
                      for number in hits]
        elif len(hits) != ALLOWED[path]:
            found.append(f"{path}: reads the wall clock {len(hits)} times, and "
                         f"{ALLOWED[path]} is allowed; lines {hits}")
    return found
