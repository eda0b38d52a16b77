#!/usr/bin/env python3
"""instruction_counts.py reads profiles, and names what made a path slower."""

import json
import pathlib
import tempfile
import unittest

import callgrind
import instruction_counts
from callgrind import Counts

PROFILE = """# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: hot_paths pack
desc: Trigger: Program termination

positions: line
events: Ir
summary: {total}

ob=(1) /build/bin/hot_paths
fl=(1)
fn=(1) CountedRun
0 10
cfn=(2) encoderd::(anonymous namespace)::PackPath::Run()
calls=1 0
0 {below}

fn=(2)
0 90
cfn=(3) encoderd::PackedBatch::Append(encoderd::TokenSequence const&, int)
calls=8 0
0 {append}
cfn=(4) encoderd::Check(std::vector<int, std::allocator<int> > const&)
calls=8 0
0 300

fn=(3)
0 {append}

fn=(4)
0 200
cob=(2) /usr/lib/libc.so.6
cfn=(5) memcpy
calls=8 0
0 70
cob=(2)
cfn=(6) malloc
calls=8 0
0 30

ob=(2)
fn=(5)
0 70

fn=(6)
0 20
cfn=(7) take_page
calls=2 0
0 10

fn=(7)
0 10

totals: {total}
"""
PROGRAM = "/build/bin/hot_paths"


def profile(append):
    """A path of 1000 instructions where Append takes 600."""
    return callgrind.read(PROFILE.format(
        append=append, below=390 + append, total=400 + append), PROGRAM)


def baseline(**paths):
    return {name: instruction_counts.stored(counts)
            for name, counts in paths.items()}


class InstructionCountsTest(unittest.TestCase):
    def test_a_function_has_what_libraries_executed_for_it_but_no_more(self):
        self.assertEqual(profile(600), Counts(1000, {
            "CountedRun": 10, "encoderd::PackPath::Run": 90,
            "encoderd::PackedBatch::Append": 600, "encoderd::Check": 300}))

    def test_a_library_that_two_functions_call_is_shared_by_what_it_took(self):
        text = ("ob=(1) p\nfn=(1) A()\n0 5\ncfn=(3) memcpy\ncalls=1 0\n0 90\n"
                "fn=(2) B()\n0 5\ncfn=(3)\ncalls=9 0\n0 10\n"
                "ob=(2) libc\nfn=(3)\n0 100\n")
        self.assertEqual(callgrind.read(text, "p"),
                         Counts(110, {"A": 95, "B": 15}))

    def test_a_library_that_calls_back_keeps_nothing(self):
        text = ("ob=(1) p\nfn=(1) A()\n0 5\ncfn=(2) sort\ncalls=1 0\n0 60\n"
                "fn=(3) Less()\n0 40\n"
                "ob=(2) libc\nfn=(2)\n0 15\ncfn=(4) more\ncalls=1 0\n0 45\n"
                "fn=(4)\n0 5\ncfn=(2)\ncalls=1 0\n0 20\n"
                "cfn=(3)\ncalls=9 0\n0 40\n")
        self.assertEqual(callgrind.read(text, "p"),
                         Counts(65, {"A": 25, "Less": 40}))

    def test_four_percent_more_fail_and_name_the_function(self):
        report, good = instruction_counts.check(
            baseline(pack=profile(600)), {"pack": profile(640)}, ["pack"])
        self.assertFalse(good)
        self.assertEqual(
            report[0], "pack: 1,040 instructions, baseline 1,000 (+4.00 %)")
        self.assertIn("more than 3 %", report[1])
        self.assertEqual(report[2:],
                         ["    encoderd::PackedBatch::Append: 600 -> 640"])

    def test_two_percent_more_pass(self):
        report, good = instruction_counts.check(
            baseline(pack=profile(600)), {"pack": profile(620)}, ["pack"])
        self.assertTrue(good)
        self.assertEqual(
            report, ["pack: 1,020 instructions, baseline 1,000 (+2.00 %)"])

    def test_four_percent_less_fail_so_that_the_gain_is_recorded(self):
        report, good = instruction_counts.check(
            baseline(pack=profile(600)), {"pack": profile(560)}, ["pack"])
        self.assertFalse(good)
        self.assertIn("the path became cheaper: run", report[1])
        self.assertEqual(report[2:],
                         ["    encoderd::PackedBatch::Append: 600 -> 560"])

    def test_one_path_that_grew_fails_among_others(self):
        report, good = instruction_counts.check(
            baseline(a=profile(600), b=profile(600), c=profile(600)),
            {"a": profile(600), "b": profile(700), "c": profile(600)}, "abc")
        self.assertFalse(good)
        self.assertEqual(len(report), 5)

    def test_a_function_that_is_new_or_gone_is_named(self):
        before = Counts(1000, {"a": 900, "Old": 100})
        after = Counts(1100, {"a": 900, "Fresh": 200})
        self.assertEqual(instruction_counts.growth(before, after),
                         ["    Fresh: 0 -> 200"])
        self.assertEqual(instruction_counts.growth(after, before),
                         ["    Fresh: 200 -> 0"])

    def test_a_path_without_a_baseline_fails(self):
        report, good = instruction_counts.check({}, {"pack": profile(600)},
                                                ["pack"])
        self.assertFalse(good)
        self.assertIn("pack: not in the baseline", report[0])

    def test_a_baseline_without_its_path_fails(self):
        report, good = instruction_counts.check(
            baseline(pack=profile(600), gone=profile(600)),
            {"pack": profile(600)}, ["pack"])
        self.assertFalse(good)
        self.assertIn("gone: in the baseline but not in hot_paths", report[0])

    def test_another_compiler_is_named(self):
        self.assertEqual(
            instruction_counts.other_environment(
                {"compiler": "GNU 12", "glibc": "2.36"},
                {"compiler": "GNU 13", "glibc": "2.36"}),
            ["compiler GNU 13, not GNU 12"])

    def test_names_are_short(self):
        for long, short in (
                ("encoderd::F(int)'2", "encoderd::F"),
                ("void std::vector<encoderd::Input, std::allocator<encoderd::"
                 "Input> >::_M_realloc_insert<int>(int&&)",
                 "std::vector<encoderd::Input>::_M_realloc_insert<int>"),
                ("encoderd::G(std::__cxx11::basic_string<char, std::char_"
                 "traits<char>, std::allocator<char> > const&)",
                 "encoderd::G"),
                ("std::vector<std::vector<int, std::allocator<int> >, std::"
                 "allocator<std::vector<int, std::allocator<int> > > >::f()",
                 "std::vector<std::vector<int>>::f"),
                ("encoderd::H(int)::{lambda(int)#1}::operator()(int) const",
                 "encoderd::H"),
                ("encoderd::Less::operator()(int, int) const",
                 "encoderd::Less::operator()")):
            self.assertEqual(callgrind.short_name(long), short)

    def test_an_update_keeps_the_paths_that_were_not_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "baseline.json")
            for counts in ({"a": profile(600), "b": profile(600)},
                           {"b": profile(700)}):
                instruction_counts.update(file, {"glibc": "2"}, counts,
                                          ["a", "b"])
            paths = json.loads(file.read_text())["paths"]
            self.assertEqual([paths[name]["instructions"] for name in "ab"],
                             [1000, 1100])
            instruction_counts.update(file, {"glibc": "3"}, {"b": profile(1)},
                                      ["a", "b"])
            self.assertEqual(list(json.loads(file.read_text())["paths"]), ["b"])


if __name__ == "__main__":
    unittest.main()
