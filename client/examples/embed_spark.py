#!/usr/bin/env python3
"""Embeds the column `text` of Parquet files with Spark, over one server or
several.

    spark-submit --master MASTER --conf spark.task.maxFailures=40 \\
        embed_spark.py INPUT OUTPUT [TARGET [TASKS]]

MASTER: of the cluster; or, on this machine, local[*,40]. Without it Spark tries
each task once.
TARGET: HOST:PORT, or several servers: dns:///NAME:PORT for all addresses of a
name, ipv4:ADDRESS:PORT,ADDRESS:PORT. OUTPUT: a new folder of Parquet files with
the same rows and a column `vector`.
"""

import sys

import encoderd
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, FloatType


def embedder(target):
    def embed(batches):
        # Here, in the worker: a client belongs to the process that made it.
        # Its calls are spread over the servers. Where its retries are not
        # enough, Spark begins the task again and drops what it had written, up
        # to spark.task.maxFailures times; then the whole job fails.
        with encoderd.Client(target) as client:
            for batch in batches:
                # A text that is too long would fail the job.
                batch["vector"] = list(client.encode(batch["text"],
                                                     truncate="end"))
                yield batch
    return embed


def main(source, out, target=encoderd.DEFAULT_TARGET, tasks="16"):
    spark = SparkSession.builder.appName("embed").getOrCreate()
    rows = spark.read.parquet(source)
    schema = rows.schema.add("vector", ArrayType(FloatType()))
    rows.repartition(int(tasks)).mapInPandas(embedder(target), schema
                                             ).write.parquet(out)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
