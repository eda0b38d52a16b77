#!/usr/bin/env python3
"""The wheel of deploy/wheel.sh, installed into a bare Debian 12 and used there.

    ENCODERD_TEST_MODEL=FOLDER tests/integration/packages/wheel_test.py

Takes minutes, the build included; tests/nightly.sh runs it.
"""

import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from clean_root import BUILT_IN, MODEL, ROOT, CleanRoot, built, not_hardened, run

sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import Server  # noqa: E402  after the path

MAX_BYTES = 24 * 1000 * 1000
# Of the step "embedding": Python, the server's start, the first vector. The
# other steps take as long as the network does; they are printed alone.
MAX_SECONDS = 60
SENTENCES = ROOT / "tests/golden/sentences.txt"
PROGRAMS = ROOT / "build/package/bin"
BIN = "/venv/bin"
# All else comes with the wheel.
OF_THE_SYSTEM = re.compile(
    r"(linux-vdso|ld-linux-x86-64|libc|libm|libstdc\+\+|libgcc_s|libz)\.so\.\d+")

FIRST = f"""
import encoderd
with encoderd.Server(model="{MODEL}") as server, server.client() as client:
    print(*client.encode("the first text").shape)
"""
BITS = f"""
import subprocess, encoderd
with encoderd.Server(model="{MODEL}") as server:
    subprocess.run(["{BIN}/encoderctl", "embed", "--target", server.target,
                    "--input=/sentences.txt", "--truncate=end",
                    "--output=/inside.npy"], check=True)
print(server.exit_code)
"""
COMMANDS = f"""
set -e
encoderd --version
encoderctl --version
python -m encoderd serve {MODEL} --listen=127.0.0.1:0 --http_listen= 2> /log &
until grep -q event=serving /log; do sleep 0.1; kill -0 $!; done
target=$(sed -n 's/.*event=listening grpc=//p' /log)
encoderctl health --target="$target"
kill -TERM $!
wait $!
grep -o 'event=stopped' /log
"""


def setUpModule():
    global wheel, root, first
    assert os.environ.get("ENCODERD_TEST_MODEL"), (
        "ENCODERD_TEST_MODEL names no model: deploy/fetch-model.sh")
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    wheel = built("wheel.sh", folder.name)
    root = CleanRoot()
    unittest.addModuleCleanup(root.close)
    root.copy(os.environ["ENCODERD_TEST_MODEL"], MODEL)
    root.copy(wheel, f"/{wheel.name}")
    with root.timed("Python"):
        root.run("apt-get", "update", "-qq")
        root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends",
                 "python3-venv")
    with root.timed("pip install"):
        root.run("python3", "-m", "venv", "/venv")
        root.run(f"{BIN}/pip", "install", "--quiet", f"/{wheel.name}")
    with root.timed("embedding"):
        first = root.run(f"{BIN}/python", "-c", FIRST)


def shell(script):
    return root.run("env", f"PATH={BIN}:/usr/bin:/bin", "bash", "-c",
                    script).stdout


class WheelTest(unittest.TestCase):
    def test_the_first_embedding_comes_soon(self):
        self.assertEqual(first.stdout, "384\n")
        print(f"wheel of {wheel.stat().st_size / 1e6:.1f} MB, first embedding "
              f"after {root.timing()}", flush=True)
        self.assertLess(root.seconds["embedding"], MAX_SECONDS)

    def test_its_size_is_bounded_and_its_tag_names_a_glibc(self):
        self.assertLess(wheel.stat().st_size, MAX_BYTES)
        self.assertRegex(wheel.name,
                         r"-py3-none-manylinux_2_\d+_x86_64\.whl$")

    def test_its_vectors_have_the_bits_of_a_server_outside(self):
        root.copy(SENTENCES, "/sentences.txt")
        self.assertEqual(root.run(f"{BIN}/python", "-c", BITS).stdout[-2:],
                         "0\n")
        with tempfile.TemporaryDirectory() as folder, Server(
                PROGRAMS / "encoderd", os.environ["ENCODERD_TEST_MODEL"]
        ) as outside:
            there = pathlib.Path(folder, "outside.npy")
            run(PROGRAMS / "encoderctl", "embed",
                f"--target={outside.address}", f"--input={SENTENCES}",
                "--truncate=end", f"--output={there}")
            inside = (root.path / "inside.npy").read_bytes()
            texts = SENTENCES.read_text(encoding="utf-8").count("\n")
            self.assertEqual(len(inside), 128 + texts * 384 * 4)
            self.assertEqual(inside, there.read_bytes())

    def test_its_commands_are_on_the_path_and_the_server_ends_by_term(self):
        version = re.search(r"project\(encoderd VERSION (\S+)",
                            (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(shell(COMMANDS).split("\n"), [
            f"encoderd {version}", f"encoderctl {version}", "SERVING",
            "event=stopped", ""])

    def test_its_programs_are_hardened(self):
        for name in ("encoderd", "encoderctl"):
            self.assertEqual([], not_hardened(PROGRAMS / name))

    def test_packed_again_it_has_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = built("wheel.sh", folder, umask=0o077)
            self.assertEqual(wheel.name, again.name)
            # assertEqual would print them.
            self.assertTrue(wheel.read_bytes() == again.read_bytes())

    def test_it_loads_nothing_of_the_system_but_the_c_and_cxx_runtime(self):
        loaded = shell(f"ldd {BIN}/../lib/python3*/site-packages"
                       "/encoderd_programs/bin/*")
        self.assertNotIn("not found", loaded)
        self.assertIn("encoderd.libs/libgrpc", loaded)
        for line in loaded.splitlines():
            if "encoderd.libs/" in line or line.endswith(":"):
                continue
            name = pathlib.PurePath(line.split()[0]).name
            self.assertTrue(OF_THE_SYSTEM.fullmatch(name), line)

    def test_each_package_that_it_brings_has_its_license_and_is_listed(self):
        site, = root.path.glob("venv/lib/python3*/site-packages")
        folder = site / "encoderd_programs"
        sbom = json.loads((folder / "sbom.spdx.json").read_text())
        packages = {package["name"] for package in sbom["packages"]}
        self.assertLess({"encoderd", "libgrpc++1.51", "libssl3"} | BUILT_IN, packages)
        static = {one["relatedSpdxElement"] for one in sbom["relationships"]
                  if one["relationshipType"] == "STATIC_LINK"}
        self.assertEqual(static, {f"SPDXRef-{name}" for name in BUILT_IN})
        self.assertGreater(len(list((site / "encoderd.libs").iterdir())), 50)
        licenses = folder / "licenses"
        for name in packages - {"encoderd"}:
            text = (licenses / f"usr/share/doc/{name}/copyright").read_text(
                encoding="utf-8", errors="replace")
            for common in re.findall(r"/usr/share/common-licenses/[\w.+-]*\w",
                                     text):
                self.assertTrue((licenses / common[1:]).exists(), common)
        self.assertTrue((licenses / "usr/share/doc/encoderd/LICENSE").exists())


if __name__ == "__main__":
    unittest.main()
