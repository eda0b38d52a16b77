#!/usr/bin/env python3
"""The quick start of README.md in a bare Debian 12: from the sources to the
first embedding, the model's download apart.

    ENCODERD_TEST_MODEL=FOLDER tests/integration/packages/source_test.py

Takes as long as the build; tests/nightly.sh runs it.
"""

import os
import re
import subprocess
import unittest

from clean_root import MODEL, ROOT, CleanRoot

SOURCES = "/srv/encoderd"
MODELS = "/root/.cache/encoderd/models"


class SourceTest(unittest.TestCase):
    def test_the_quick_start_ends_in_embeddings(self):
        model = os.environ["ENCODERD_TEST_MODEL"]
        root = CleanRoot()
        self.addCleanup(root.close)
        root.copy(model, f"{MODELS}/{os.path.basename(MODEL)}")
        inside = root.path / SOURCES.lstrip("/")
        inside.mkdir(parents=True)
        archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT,
                                   stdout=subprocess.PIPE)
        subprocess.run(["tar", "-xC", inside], check=True, stdin=archive.stdout)
        self.assertEqual(archive.wait(), 0)
        with root.timed("whole"):
            said = root.run(f"{SOURCES}/deploy/quickstart.sh", "--once",
                            timeout=3600).stdout
        self.assertIn("A man is eating food.", said)
        steps = re.findall(r"^   (\w.*): (\d+) s$", said, re.MULTILINE)
        self.assertIn("build", dict(steps))
        print(f"first embedding from source after {root.seconds['whole']:.0f} s"
              f" ({', '.join(map(' '.join, steps))})", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
