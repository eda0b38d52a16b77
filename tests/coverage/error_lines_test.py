"""What counts as a line that reports an error."""

import pathlib
import tempfile
import unittest
from unittest import mock

from error_lines import error_lines, find_makers, read_counts

SOURCE = """\
absl::Status Bad(int value) {
  return absl::InvalidArgumentError("bad");
}

absl::Status Check(int value) {
  if (value < 0) return Bad(value);
  return absl::OkStatus();
}

absl::StatusOr<int> Read(int value) {
  const auto found = Find(value);
  if (!found.ok()) return found.status();
  const absl::Status checked = Check(value);
  if (!checked.ok()) return checked;
  try {
    return Parse(value);
  } catch (...) {
    return FromHere();
  }
}

absl::Status FullError() {
  absl::Status full = Check(1);
  return full;
}
"""


class ErrorLinesTest(unittest.TestCase):
    def test_a_maker_returns_nothing_but_errors(self):
        self.assertEqual(find_makers([SOURCE]), {"Bad", "FullError"})

    def test_a_prototype_makes_nothing(self):
        self.assertEqual(find_makers(["absl::Status Bad(int);\n\nint F() {\n"
                                      "  return absl::AbortedError();\n}\n"]),
                         set())

    def test_lines_that_report_an_error(self):
        lines = SOURCE.splitlines()
        found = error_lines(SOURCE, find_makers([SOURCE]))
        self.assertEqual([lines[number - 1].strip() for number in
                          sorted(found)],
                         ['return absl::InvalidArgumentError("bad");',
                          "if (value < 0) return Bad(value);",
                          "if (!found.ok()) return found.status();",
                          "if (!checked.ok()) return checked;",
                          "return FromHere();"])

    def test_a_source_that_no_test_ran_counts(self):
        with tempfile.TemporaryDirectory() as place:
            root = pathlib.Path(place).resolve()
            folder = root / "build" / "server"
            folder.mkdir(parents=True)

            def counts_of(data, build):
                name = data.name.removesuffix(".gcno")
                ran = data.with_suffix(".gcda").exists()
                return [(str(root / "server" / name), 7, ran)]

            with mock.patch("error_lines.counts_of", counts_of):
                for name in ("a.cc.gcno", "b.cc.gcno"):
                    (folder / name).touch()
                with self.assertRaisesRegex(SystemExit, "no counters"):
                    read_counts(root / "build", root)
                (folder / "a.cc.gcda").touch()
                self.assertEqual(
                    {"server/a.cc": {7: True}, "server/b.cc": {7: False}},
                    read_counts(root / "build", root))


if __name__ == "__main__":
    unittest.main()
