#!/usr/bin/env python3
"""deploy/kubernetes in order: components in any, pods that replace others, the
steps of the page."""

import itertools
import random
import re
import tempfile
import unittest

import manifests
from rollout import Lookups, Update

# gRPC's default and a resolver without memory; the same with one that keeps
# answers for 30 s; callers that look up more often.
LOOKUPS = (Lookups(30, 0), Lookups(30, 30), Lookups(2, 30))


def update_of(objects, **changes):
    deployment = objects["Deployment", "encoderd"]["spec"]
    pod = deployment["template"]["spec"]
    delay, = (re.fullmatch(r"--drain_delay=(\d+)s", flag)[1]
              for flag in pod["containers"][0]["args"] if "delay" in flag)
    return Update(**{
        "surge": deployment["strategy"]["rollingUpdate"]["maxSurge"] > 0,
        "min_ready": deployment["minReadySeconds"],
        "drain_delay": int(delay), **changes})


def worst_outage(update, lookups):
    """Of many callers, in updates of at most three pods; of at least two where
    an old pod leaves first."""
    rng = random.Random(1)
    worst = 0
    for _ in range(400):
        starts = rng.choices((3, 6, 10, 20, 40, 90),
                             k=rng.choice((1, 2, 3) if update.surge else (2, 3)))
        worst = max(worst, lookups.outage(*update.pods(starts), rng))
    return worst


class OrderTest(unittest.TestCase):
    def test_the_order_of_components_makes_no_difference(self):
        def sets(one):
            """With lists of volumes and mounts in one order."""
            if isinstance(one, dict):
                return {key: sorted((sets(v) for v in value), key=str)
                        if key in ("volumes", "volumeMounts") else sets(value)
                        for key, value in one.items()}
            return [sets(v) for v in one] if isinstance(one, list) else one

        orders = [*itertools.permutations(manifests.COMPONENTS, 2),
                  manifests.COMPONENTS[::-1]]
        with tempfile.TemporaryDirectory() as folder:
            for overlay in manifests.OVERLAYS:
                for order in orders:
                    with self.subTest(overlay=overlay, order=order):
                        self.assertEqual(
                            sets(manifests.built(overlay, order, folder)),
                            sets(manifests.built(overlay, sorted(order),
                                                 folder)))

    def test_a_new_pod_needs_no_spare_gpu(self):
        for overlay, update in (("cpu", {"maxSurge": 1, "maxUnavailable": 0}),
                                ("cuda", {"maxSurge": 0, "maxUnavailable": 1})):
            with tempfile.TemporaryDirectory() as folder:
                built = manifests.built(overlay, (), folder)
            self.assertEqual(
                built["Deployment", "encoderd"]["spec"]["strategy"][
                    "rollingUpdate"], update)

    def test_a_caller_always_knows_a_pod_while_an_update_replaces_them(self):
        for overlay in manifests.OVERLAYS:
            with tempfile.TemporaryDirectory() as folder:
                built = manifests.built(overlay, (), folder)
            for lookups in LOOKUPS:
                with self.subTest(overlay=overlay, lookups=lookups):
                    self.assertEqual(
                        worst_outage(update_of(built), lookups), 0)
            # 4 s are too short, as they were with two servers on loopback; so
            # is half of the time where answers are kept.
            for minimum, lookups in ((4, LOOKUPS[0]), (4, LOOKUPS[1]),
                                     (update_of(built).min_ready // 2,
                                      LOOKUPS[1])):
                with self.subTest(overlay=overlay, minimum=minimum):
                    self.assertGreater(worst_outage(
                        update_of(built, min_ready=minimum), lookups), 2)

    def test_the_page_makes_the_namespace_before_anything_goes_into_it(self):
        page = (manifests.FOLDER / "README.md").read_text()
        steps = re.findall(r"^ {7}(\S.*)$", page, re.MULTILINE)
        makes = [i for i, step in enumerate(steps)
                 if "base/namespace.yml" in step or "apply -k" in step]
        uses = [i for i, step in enumerate(steps)
                if "-n encoderd" in step or "rules.sh" in step]
        self.assertEqual(len(uses), 2)
        # Step 2 is left out with cert-manager or insecure.
        self.assertLess(makes[0], uses[0])
        self.assertLess(makes[1], uses[1])


if __name__ == "__main__":
    unittest.main()
