"""Dependencies point one way: client -> proto <- server -> engine.

Every rule is a folder, what its files may not include, and why. A path in an
#include line is matched from its start.
"""

import re

INCLUDE = re.compile(r'\s*#\s*include\s+[<"]([^>"]+)[>"]')

RPC = ("grpc/", "grpcpp/", "grpc++/", "google/", "encoderd/", "proto/")

# (folder, forbidden beginnings, exceptions, reason)
RULES = [
    ("engine/", RPC + ("prometheus/", "absl/flags/"), (),
     "the engine knows no gRPC, Protobuf, Prometheus or flags"),
    ("engine/", ("server/", "client/", "tests/"), (),
     "the engine depends on nothing above it"),
    # The engine's floors, each on those below it.
    ("engine/io/", ("engine/",), ("engine/io/",),
     "engine/io is the ground floor"),
    ("engine/base/", ("engine/",), ("engine/base/", "engine/io/"),
     "engine/base stands on engine/io alone"),
    ("engine/device/", ("engine/",),
     ("engine/device/", "engine/base/", "engine/io/"),
     "a device knows plain weights and batches, no model folder"),
    ("engine/checkpoint/", ("engine/",),
     ("engine/checkpoint/", "engine/device/weights.h",
      "engine/device/model_sizes.h", "engine/base/", "engine/io/"),
     "engine/checkpoint gives plain structs to a device and knows none"),
    ("engine/tokenizer/", ("engine/",),
     ("engine/tokenizer/", "engine/base/", "engine/io/"),
     "the tokenizer is next to checkpoint, not on it"),
    ("server/pipeline/", RPC + ("prometheus/", "absl/flags/"), (),
     "the pipeline knows no gRPC, Protobuf, Prometheus or flags"),
    ("server/pipeline/", ("server/",), ("server/pipeline/", "server/base/"),
     "the pipeline is below the rest of the server"),
    ("server/api/", RPC + ("prometheus/", "absl/flags/"), (),
     "the API knows no gRPC, Protobuf, Prometheus or flags"),
    ("server/api/", ("server/",),
     ("server/api/", "server/pipeline/", "server/base/"),
     "the API stands on the pipeline; protocols stand on the API"),
    ("server/base/", RPC + ("prometheus/", "absl/flags/", "engine/", "server/"),
     ("server/base/",),
     "server/base is the ground floor of the server"),
    ("server/net/", ("server/",), ("server/net/",),
     "sockets are below every protocol"),
    ("server/security/", ("server/",),
     ("server/security/", "server/base/", "server/pipeline/"),
     "secrets are below what asks for them"),
    ("server/trace/", ("server/",),
     ("server/trace/", "server/base/", "server/pipeline/"),
     "spans are below what they are of"),
    ("server/observe/", ("server/",),
     ("server/observe/", "server/base/", "server/net/", "server/pipeline/",
      "server/security/", "server/trace/"),
     "metrics are below the protocols that they count"),
    ("server/rpc/", ("server/",),
     ("server/rpc/", "server/api/", "server/base/", "server/net/",
      "server/observe/", "server/pipeline/", "server/security/",
      "server/trace/"),
     "a protocol knows no flags and no process"),
    ("server/", ("client/", "tests/"), (),
     "the server does not know its clients"),
    ("server/", ("engine/",),
     ("engine/model.h", "engine/session.h", "engine/tokenizer/tokenizer.h",
      "engine/base/batch.h", "engine/base/cgroup.h", "engine/base/error.h",
      "engine/base/pauses.h", "engine/base/pooling.h",
      "engine/base/quantize.h", "engine/base/reasons.h",
      "engine/base/start_thread.h", "engine/base/tensor.h",
      "engine/base/utf8.h",
      "engine/checkpoint/model_config.h",
      "engine/checkpoint/position_inspection.h",
      "engine/checkpoint/weight_bytes.h",
      "engine/device/device_words.h", "engine/io/file_error.h"),
     "the server reaches the engine only through Model, Session, Tokenizer, "
     "their plain types, named threads, limits of control groups, and errors "
     "of files"),
    ("client/", ("engine/", "server/", "tests/"), (),
     "a client knows the contract in proto/ only"),
]

# (beginning of an include, folders that may use it, reason)
OWNERS = [
    (("cublas", "cuda_", "cuda."), ("engine/device/cuda/", "tests/"),
     "only the CUDA device knows CUDA's libraries"),
    (("cutlass/", "cute/"), ("engine/device/cuda/",),
     "only the CUDA device knows CUTLASS"),
    (("engine/device/cpu/", "engine/device/cuda/"), ("engine/device/", "tests/"),
     "device.h is the only seam between model and device"),
    (("nlohmann/",), ("engine/io/", "client/", "tests/"),
     "JSON is read through engine/io, which bounds it"),
    (("stb/",), ("client/cpp/encoderctl/image.cc", "tests/"),
     "pictures are written in one place"),
    (("unicode/",), ("engine/tokenizer/", "tests/"),
     "only the tokenizer knows ICU"),
]


def check(tree):
    found = []
    for path in tree.cxx():
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(1)
            for folder, forbidden, allowed, reason in RULES:
                if (path.startswith(folder) and included.startswith(forbidden)
                        and not included.startswith(allowed or ("\0",))):
                    found.append(f"{path}:{number}: includes {included}: "
                                 f"{reason}")
            for beginnings, folders, reason in OWNERS:
                if (included.startswith(beginnings)
                        and not path.startswith(folders)):
                    found.append(f"{path}:{number}: includes {included}: "
                                 f"{reason}")
    return found
