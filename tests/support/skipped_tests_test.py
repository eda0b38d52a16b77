#!/usr/bin/env python3
"""skipped_tests.py counts what GoogleTest skipped, by reason."""

import unittest

import skipped_tests

LOG = """[ RUN      ] Tiles/TileProductTest.SumsColumns/emulation
[       OK ] Tiles/TileProductTest.SumsColumns/emulation (3 ms)
[ RUN      ] Tiles/TileProductTest.SumsColumns/amx
../../tests/unit/tile_product_test.cc:32: Skipped
this CPU has no avx512_amx; the emulation is tested
[  SKIPPED ] Tiles/TileProductTest.SumsColumns/amx (0 ms)
[ RUN      ] GoldenTest.Int8
/source/tests/golden/golden_test.cc:172: Skipped
this CPU has no avx512_vnni
[  SKIPPED ] GoldenTest.Int8 (0 ms)
[ RUN      ] GoldenTest.Int8Again
/source/tests/golden/golden_test.cc:172: Skipped
this CPU has no
avx512_vnni
[  SKIPPED ] GoldenTest.Int8Again (0 ms)
[ RUN      ] GoldenTest.Silent
/source/tests/golden/golden_test.cc:180: Skipped

[  SKIPPED ] GoldenTest.Silent (0 ms)
[  PASSED  ] 1 test.
[  SKIPPED ] 4 tests, listed below:
[  SKIPPED ] Tiles/TileProductTest.SumsColumns/amx
[  SKIPPED ] GoldenTest.Int8
[  SKIPPED ] GoldenTest.Int8Again
[  SKIPPED ] GoldenTest.Silent
"""


class SkippedTestsTest(unittest.TestCase):
    def test_counts_each_skipped_test_once_by_its_reason(self):
        self.assertEqual(
            ["    2  this CPU has no avx512_vnni", "    1  no reason",
             "    1  this CPU has no avx512_amx; the emulation is tested"],
            skipped_tests.reasons(LOG))

    def test_is_silent_where_nothing_was_skipped(self):
        self.assertEqual([], skipped_tests.reasons(
            "[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[  PASSED  ] 1 test.\n"))


if __name__ == "__main__":
    unittest.main()
