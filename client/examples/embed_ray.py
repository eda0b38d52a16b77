#!/usr/bin/env python3
"""Embeds the column `text` of Parquet files with Ray Data, over one server or
several.

    embed_ray.py INPUT OUTPUT [TARGET [ACTORS]]

TARGET: HOST:PORT, or several servers: dns:///NAME:PORT for all addresses of a
name, ipv4:ADDRESS:PORT,ADDRESS:PORT. OUTPUT: a new folder of Parquet files with
the same rows and a column `vector`.
"""

import sys

import encoderd
import ray


class Embed:
    """An actor. Its client's connections last for all of its batches, and its
    calls are spread over the servers."""

    def __init__(self, target):
        self.client = encoderd.Client(target)

    def __call__(self, batch):
        # A text that is too long would fail the job.
        batch["vector"] = self.client.encode(batch["text"], truncate="end")
        return batch


def main(source, out, target=encoderd.DEFAULT_TARGET, actors="2"):
    # A server that restarts costs a retry within the client. A batch for which
    # that was not enough is begun again, whole; nothing of it was kept.
    ray.data.DataContext.get_current().actor_task_retry_on_errors = [
        encoderd.UnavailableError]
    # An actor waits for servers, so it reserves little of a CPU.
    ray.data.read_parquet(source).map_batches(
        Embed, fn_constructor_args=[target], batch_size=256, num_cpus=0.1,
        compute=ray.data.ActorPoolStrategy(size=int(actors)),
    ).write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
