#!/usr/bin/env python3
"""Two servers restarted by TERM, in turn and under load: no call is lost.

    ENCODERD_TEST_MODEL=FOLDER ENCODERD_TEST_PROGRAMS=build/bench/bin \\
      tests/integration/container/restarts.py [COUNT]

Callers have both addresses and client/service_config.json, nothing else: half
of them use the first server that answers, half use both in turn. Prints what
it counted; exit code 1 where a call failed, a server did not exit with 0, or no
call was in flight when TERM came. tests/nightly.sh runs it.
"""

import contextlib
import functools
import json
import os
import pathlib
import re
import sys
import time

import grpc
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
from callers import Callers  # noqa: E402  after the path
from server_process import Server, free_port  # noqa: E402

CALLERS = 16
# Between two restarts, so that callers are back at the server that came back:
# after a refusal gRPC waits a second or more before it connects again.
PAUSE = 4  # seconds
TEXT = "A call that is in flight when a server goes away. " * 5
CONFIG = ROOT / "client/service_config.json"


@contextlib.contextmanager
def connected(addresses, policy):
    """A call over a channel that chooses among the addresses by `policy`."""
    request = encoder_pb2.EmbedRequest(inputs=[encoder_pb2.Input(text=TEXT)])
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    config["loadBalancingConfig"] = [{policy: {}}]
    options = [("grpc.service_config", json.dumps(config)),
               ("grpc.use_local_subchannel_pool", 1)]

    def call():
        try:
            embed(request, timeout=60)
        except grpc.RpcError as error:
            raise RuntimeError(f"{policy}: {error.code().name}: "
                               f"{error.details()}") from error

    with grpc.insecure_channel("ipv4:" + ",".join(addresses),
                               options) as channel:
        embed = encoder_pb2_grpc.EncoderStub(channel).Embed
        yield call


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    program = pathlib.Path(os.environ["ENCODERD_TEST_PROGRAMS"], "encoderd")
    model = os.environ["ENCODERD_TEST_MODEL"]

    def start(port):
        return Server(program, model, "--threads=1", grpc=port)

    faults = []
    under_load = in_flight = 0
    servers = []
    try:
        for _ in range(2):
            servers.append(start(free_port()))
        addresses = [server.address for server in servers]
        with Callers([functools.partial(connected, addresses, policy)
                      for policy in ("pick_first", "round_robin")
                      * (CALLERS // 2)]) as callers:
            for i in range(count):
                server = servers[i % 2]
                code = server.stop()
                found = re.search(r"event=draining in_flight=(\d+)", server.log())
                calls = int(found[1]) if found else 0
                under_load += calls > 0
                in_flight += calls
                if code != 0 or "unanswered=0" not in server.log():
                    faults.append(f"exit code {code}:\n{server.log()}")
                servers[i % 2] = start(server.grpc)
                time.sleep(PAUSE)
    finally:
        for server in servers:
            server.kill()
    lost = sum(callers.lost.values())
    print(f"{count} restarts, {in_flight} calls in flight at TERM, "
          f"{sum(callers.answered())} answered, {lost} lost")
    for what, times in callers.lost.most_common():
        faults.append(f"{times} x {what}")
    # A caller is elsewhere for a moment after each restart, not for long.
    if under_load < count / 2:
        faults.append(f"only {under_load} of {count} servers had a call in flight")
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
