#!/usr/bin/env python3
"""The table of metrics in server/docs/metrics.md against the scrape of a server with two
models: the same names, and for each the labels that it has. And the numbers of
series that server/observe/README.md gives.

    metrics_page_test.py --server=build/dev/bin/encoderd_fake_server
"""

import argparse
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import Server  # noqa: E402  after the path

SERVER = None  # set by main
HISTOGRAM_PARTS = ("_bucket", "_count", "_sum")


def documented():
    """By name: the set of labels that the table gives."""
    page = (ROOT / "server/docs/metrics.md").read_text(encoding="utf-8")
    table = page.split("<!-- table: metrics -->\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in table.splitlines()[2:]]
    return {name.strip("`"): set(filter(None, labels.split(", ")))
            for name, labels, _ in rows}


def scrape():
    """The text of /metrics of a server that serves."""
    with Server(SERVER, "a=batch_us:1", "--model=b=batch_us:1") as server:
        server.wait_for(r"(?s)(event=serving.*){2}")
        return server.metrics()


class MetricsPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.types, cls.helps, cls.labels = {}, {}, {}
        cls.series = {}
        for line in scrape().splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                cls.types[name] = kind
            elif line.startswith("# HELP "):
                _, _, name, text = line.split(maxsplit=3)
                cls.helps[name] = text
            else:
                name = re.match(r"\w+", line)[0]
                cls.series[name] = cls.series.get(name, 0) + 1
                for part in HISTOGRAM_PARTS:
                    if cls.types.get(name.removesuffix(part)) == "histogram":
                        name = name.removesuffix(part)
                labels = set(re.findall(r'(\w+)="', line)) - {"le"}
                cls.labels.setdefault(name, set()).update(labels)

    def test_the_page_names_what_a_server_shows(self):
        self.assertEqual(sorted(documented()), sorted(self.labels))
        self.assertEqual(sorted(self.types), sorted(self.labels))

    def test_the_page_gives_each_its_labels(self):
        for name, labels in documented().items():
            if name == "encoderd_model_info":
                labels = {"model", "architecture", "device", "dtype",
                          "max_len", "weights_sha256"}
            with self.subTest(name):
                self.assertEqual(self.labels[name], labels)

    def test_the_page_of_observe_counts_the_series_right(self):
        page = (ROOT / "server/observe/README.md").read_text(encoding="utf-8")
        text = page.split("## How many series\n")[1]
        found = re.findall(r"`(\w+)` has (\d+) and (\d+) more", text)
        self.assertEqual(len(found), 3)
        for name, one, more in found:
            with self.subTest(name):
                series = self.series.get(name) or self.series[f"{name}_count"]
                self.assertEqual(series, int(one) + int(more))
        one, more = (int(count.replace(",", "")) for count in re.search(
            r"some ([\d,]+) series .* some ([\d,]+) more", text).groups())
        self.assertAlmostEqual(sum(self.series.values()), one + more,
                               delta=(one + more) / 20)

    def test_each_has_help_and_a_name_that_says_its_kind(self):
        for name, kind in self.types.items():
            with self.subTest(name):
                self.assertRegex(self.helps[name], r"\w.*\.$")
                self.assertEqual(name.endswith("_total"), kind == "counter")
                self.assertRegex(name, r"^(encoderd|process)_[a-z0-9_]+$")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    options, rest = parser.parse_known_args()
    SERVER = options.server
    unittest.main(argv=sys.argv[:1] + rest)
