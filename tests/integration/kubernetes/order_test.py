#!/usr/bin/env python3
"""deploy/kubernetes in order: components in any, pods that replace others, the
steps of the page."""

import itertools
import re
import tempfile
import unittest

import manifests


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
