#!/usr/bin/env python3
"""What the page and the comments of deploy/kubernetes tell people to change:
the namespace."""

import itertools
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

import manifests

OTHER = "search"
# The namespace where a file says it: as such, in a query, in a name of DNS.
NAMED = re.compile(r'(namespace: |namespace="|\bencoderd\.)encoderd\b')


def rules(*arguments):
    return subprocess.run([manifests.FOLDER / "rules.sh", *arguments],
                          text=True, capture_output=True, check=False)


class NamespaceTest(unittest.TestCase):
    def moved(self, folder):
        """Changes a copy as base/kustomization.yml says."""
        subprocess.run(["cp", "-R", manifests.FOLDER, f"{folder}/kubernetes"],
                       check=True)
        copy = pathlib.Path(folder) / "kubernetes"
        base = copy / "base/kustomization.yml"
        text = base.read_text()
        comment = re.search(r"# Another name:(?:.*\n#)*.*\nnamespace:", text)[0]
        base.write_text(text.replace("\nnamespace: encoderd\n",
                                     f"\nnamespace: {OTHER}\n"))
        for name in re.findall(r"[\w/-]+\.yml", comment):
            path = copy / name
            text = path.read_text()
            if name.endswith("/namespace.yml"):
                changed = text.replace("name: encoderd\n", f"name: {OTHER}\n")
            else:
                changed = NAMED.sub(rf"\g<1>{OTHER}", text)
            self.assertNotEqual(changed, text, name)
            path.write_text(changed)

    def test_everything_goes_into_another_one(self):
        with tempfile.TemporaryDirectory() as folder:
            self.moved(folder)
            for choice in itertools.product(manifests.OVERLAYS,
                                            ((), manifests.COMPONENTS)):
                objects = manifests.built(*choice, folder)
                self.assertIn(("Namespace", OTHER), objects)
                for (kind, _), one in objects.items():
                    with self.subTest(choice=choice, kind=kind):
                        self.assertEqual(
                            one["metadata"].get("namespace", OTHER), OTHER)
                        self.assertNotRegex(yaml.safe_dump(one), NAMED)

    def test_the_rules_do_too(self):
        moved = manifests.by_name(rules(OTHER).stdout)
        here = manifests.by_name(rules().stdout)
        for name, one in here.items():
            self.assertEqual(one["metadata"]["namespace"], "encoderd")
            self.assertEqual(moved[name]["metadata"]["namespace"], OTHER)
            self.assertEqual(moved[name]["spec"], one["spec"])

    def test_the_rules_need_a_name(self):
        for arguments in (("--help",), ("",), ("a", "b"), ("a\nb",)):
            done = rules(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: rules.sh", done.stderr)


if __name__ == "__main__":
    unittest.main()
