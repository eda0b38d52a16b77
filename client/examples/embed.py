#!/usr/bin/env python3
"""Embeds two texts and prints how similar they are.

    embed.py [HOST:PORT]

Without an argument the server is that of ENCODERD_TARGET, else localhost:8400.
"""

import sys

import encoderd

target = sys.argv[1] if len(sys.argv) > 1 else None
with encoderd.Client(target) as client:
    try:
        vectors = client.encode(["A man eats.", "Someone has a meal."])
    except encoderd.EncoderdError as error:
        sys.exit(str(error))
print(f"{vectors.shape[0]} x {vectors.shape[1]}, "
      f"similarity {vectors[0] @ vectors[1]:.6g}")
