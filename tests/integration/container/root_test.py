"""deploy/image: whose the libraries are, what is kept and listed. The image as a
whole is tested by container_test.py."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]
                       / "deploy/image"))
import packages
import root
import sbom
from images import BUILT_IN, ROOT


def version_of(package):
    return subprocess.run(["dpkg-query", "--show", "--showformat=${Version}",
                           package], check=True, capture_output=True,
                          text=True).stdout


class RootTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, name, *arguments, source="int f(void) { return 0; }\n"):
        file = self.folder / f"{name}.c"
        file.write_text(source)
        subprocess.run(["cc", file, "-o", self.folder / name, *arguments],
                       check=True)
        return self.folder / name

    def test_libraries_are_of_the_packages_that_installed_them(self):
        program = self.compile("uses_z", "-Wl,--no-as-needed", "-lz",
                               source="int main(void) { return 0; }\n")
        files = root.libraries([program])
        names = {file.name for file in files}
        self.assertIn("libz.so.1", names)
        self.assertIn("libc.so.6", names)
        self.assertTrue(any(name.startswith("ld-linux") for name in names))
        found = {package.name: package.version
                 for package in packages.Owners().of(files)}
        self.assertEqual(found, {"libc6": version_of("libc6"),
                                 "zlib1g": version_of("zlib1g")})

    def test_a_library_that_is_not_there_is_named(self):
        library = self.compile("libgone.so", "-shared", "-fPIC")
        program = self.compile("program", "-Wl,--no-as-needed", library,
                               source="int main(void) { return 0; }\n")
        library.unlink()
        with self.assertRaisesRegex(ValueError, "libgone.so"):
            root.libraries([program])

    def test_a_file_of_no_package_is_refused_by_name(self):
        library = self.compile("libours.so", "-shared", "-fPIC")
        with self.assertRaisesRegex(ValueError, "libours.so: belongs to no"):
            packages.Owners().of([library])
        with self.assertRaisesRegex(ValueError, "no-such-thing: no such package"):
            packages.Owners().named("no-such-thing")

    def test_libraries_lie_where_the_loader_looks_without_a_cache(self):
        for file in root.libraries(["/bin/ls"]):
            self.assertRegex(root.where(file), r"^/usr/lib(64)?/.*\.so")
        library = self.compile("libours.so.1", "-shared", "-fPIC")
        self.assertEqual(root.where(library), "/usr/lib/libours.so.1")

    def test_a_license_comes_with_the_licenses_that_it_refers_to(self):
        root.keep_license(packages.Owners().named("libgomp1"), self.folder)
        doc = self.folder / "usr/share/doc/libgomp1/copyright"
        self.assertIn("GPL", doc.read_text(encoding="utf-8"))
        common = self.folder / "usr/share/common-licenses/GPL-3"
        self.assertIn("GNU GENERAL PUBLIC LICENSE", common.read_text())

    def test_a_bundle_gets_the_licenses_of_its_libraries(self):
        script = ROOT / "deploy/package/bundle_licenses.py"
        libz = next(file for file in root.libraries(
            [self.compile("uses_z", "-Wl,--no-as-needed", "-lz",
                          source="int main(void) { return 0; }\n")])
            if file.name == "libz.so.1")
        subprocess.run([script, "--built-in=nlohmann-json3-dev",
                        self.folder / "licenses", libz], check=True,
                       stderr=subprocess.DEVNULL)
        kept = self.folder / "licenses/usr/share/doc"
        self.assertEqual({"zlib1g", "nlohmann-json3-dev"},
                         {file.parent.name for file in kept.glob("*/copyright")})
        ours = self.compile("libours.so", "-shared", "-fPIC")
        done = subprocess.run([script, self.folder / "none", ours], text=True,
                              check=False, capture_output=True)
        self.assertEqual(1, done.returncode)
        self.assertIn("libours.so: belongs to no installed package",
                      done.stderr)

    def test_licenses_come_with_each_dependency_of_headers_alone(self):
        pages = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        names = re.findall(r"(?m)^\| ([\w-]+).*\(headers only\) \|$", pages)
        self.assertIn("CUTLASS", names)
        names.remove("CUTLASS")  # of no package; root.py gets its license
        self.assertEqual(len(names), len(BUILT_IN))
        for name in names:
            self.assertTrue(any(name in package for package in BUILT_IN), name)
        for package in BUILT_IN:
            root.keep_license(packages.Owners().named(package), self.folder)

    def test_the_list_names_each_package_and_how_it_is_linked(self):
        owners = packages.Owners()
        zlib, json3 = owners.named("zlib1g"), owners.named("nlohmann-json3-dev")
        texts = []
        for name in ("one", "two"):
            with mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "0"}):
                sbom.write(self.folder / name, "1.2", "abc", [zlib], [json3])
            texts.append((self.folder / name).read_text())
        self.assertEqual(*texts)
        listed = json.loads(texts[0])
        self.assertEqual(listed["creationInfo"]["created"],
                         "1970-01-01T00:00:00Z")
        found = {package["SPDXID"]: package for package in listed["packages"]}
        self.assertEqual(found["SPDXRef-zlib1g"]["versionInfo"], zlib.version)
        self.assertRegex(
            found["SPDXRef-zlib1g"]["externalRefs"][0]["referenceLocator"],
            r"^pkg:deb/\w+/zlib1g@[\w.%:-]+\?arch=\w+&distro=\w+-[\d.]+$")
        self.assertEqual(
            [(one["spdxElementId"], one["relationshipType"],
              one["relatedSpdxElement"]) for one in listed["relationships"]],
            [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-encoderd"),
             ("SPDXRef-encoderd", "DYNAMIC_LINK", "SPDXRef-zlib1g"),
             ("SPDXRef-encoderd", "STATIC_LINK", "SPDXRef-nlohmann-json3-dev")])

    def test_the_authorities_that_the_system_trusts_come_along(self):
        package = root.trust(packages.Owners(), self.folder)
        self.assertEqual("ca-certificates", package.name)
        self.assertIn("-----BEGIN CERTIFICATE-----", (
            self.folder / "etc/ssl/certs/ca-certificates.crt").read_text())
        sbom.write(self.folder / "sbom", "1.2", "abc", [], [], [package])
        listed = json.loads((self.folder / "sbom").read_text())
        self.assertEqual(
            ["DEPENDS_ON"], [one["relationshipType"]
                             for one in listed["relationships"]
                             if one["relatedSpdxElement"]
                             == "SPDXRef-ca-certificates"])

    def test_a_release_without_a_number_is_listed_by_its_name(self):
        zlib = packages.Owners().named("zlib1g")
        for names, expected in (({"VERSION_CODENAME": "forky"}, "forky"),
                                ({}, "")):
            with mock.patch("platform.freedesktop_os_release",
                            return_value={"ID": "debian", **names}):
                sbom.write(self.folder / "sbom", "1.2", "abc", [zlib], [])
            self.assertIn(f"&distro=debian-{expected}\"",
                          (self.folder / "sbom").read_text())


if __name__ == "__main__":
    unittest.main()
