#!/usr/bin/env python3
"""The package of deploy/deb.sh, installed into a bare Debian 12 and used there:
by hand, and as a service of a systemd that runs in it. On Debian 12 alone.

    ENCODERD_TEST_MODEL=FOLDER tests/integration/packages/deb_test.py

Takes minutes, the build included; tests/nightly.sh runs it.
"""

import io
import os
import re
import subprocess
import tarfile
import tempfile
import unittest

from clean_root import BUILT_IN, MODEL, ROOT, CleanRoot, built, not_hardened

FLAGS = "/etc/encoderd/encoderd.flags"
UNIT = "/usr/lib/systemd/system/encoderd.service"
MAX_EXPOSURE = 15  # tenths; systemd calls less than 20 "OK"
TARGET = "--target=127.0.0.1:8400"  # a bare Debian does not know localhost
FIRST = f"""
encoderd --flagfile={FLAGS} --listen=127.0.0.1:0 2> /tmp/log &
until grep -q event=serving /tmp/log; do sleep 0.1; kill -0 $! || exit 1; done
target=$(sed -n 's/.*event=listening grpc=\\(\\S*\\).*/\\1/p' /tmp/log)
encoderctl embed --target="$target" hello --output=/tmp/v.npy || exit
kill -TERM $!
wait $!
"""
# "NAME: value" lines, which the test reads. A service that is killed comes
# again 5 s later.
SERVICE = f"""
pid() {{ systemctl show --property=MainPID --value encoderd; }}
mv {FLAGS} /flags
echo "--listen=127.0.0.1:0" > {FLAGS}
systemctl start encoderd && echo "start without a model: 0"
journalctl --unit=encoderd --no-pager | grep -o 'event=start_failed.*' |
  head -n 1
systemctl reset-failed encoderd
systemctl stop encoderd
mv /flags {FLAGS}
systemctl start encoderd
echo "start: $?"
echo "health: $(encoderctl health {TARGET})"
echo "status: $(systemctl show --property=StatusText --value encoderd)"
grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$(pid)/status"
encoderctl similarity {TARGET} "a text" "another" > /dev/null
echo "similarity: $?"
systemctl reload encoderd
echo "reload: $?"
first=$(pid)
kill -KILL "$first"
until [[ $(pid) != "$first" && $(systemctl is-active encoderd) == active ]]; do
  sleep 0.2
done
echo "health again: $(encoderctl health {TARGET})"
echo "restarts: $(systemctl show --property=NRestarts --value encoderd)"
systemctl stop encoderd
echo "stop: $?"
echo "result: $(systemctl show --property=Result --value encoderd)"
systemctl enable --quiet encoderd
echo "enable: $?"
systemctl start encoderd
dpkg --remove encoderd > /dev/null
echo "remove: $?"
echo "active: $(systemctl is-active encoderd)"
echo "links: $(find /etc/systemd -name encoderd.service | wc -l)"
"""


def setUpModule():
    global package, root
    model = os.environ.get("ENCODERD_TEST_MODEL")
    assert model, "ENCODERD_TEST_MODEL names no model: deploy/fetch-model.sh"
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    package = built("deb.sh", folder.name)
    root = CleanRoot()
    unittest.addModuleCleanup(root.close)
    root.copy(model, MODEL)
    root.copy(package, "/encoderd.deb")
    with root.timed("apt-get"):
        root.run("apt-get", "update", "-qq")
        install("/encoderd.deb")


def install(*packages):
    root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends",
             *packages)


def commit(time_format):
    """When the commit was made."""
    return subprocess.run(
        ["git", "log", "-1", "--format=%cd", f"--date=format-local:{time_format}"],
        check=True, text=True, cwd=ROOT, env=dict(os.environ, TZ="UTC"),
        stdout=subprocess.PIPE).stdout.strip()


class PackageTest(unittest.TestCase):
    """In the order of the names: the last removes it."""

    def test_1_the_first_embedding_follows_two_commands(self):
        flags = root.path / FLAGS[1:]
        with flags.open("a") as file:
            file.write(f"--model={MODEL}\n")
        with root.timed("embedding"):
            root.run("bash", "-c", FIRST)
        self.assertEqual(len((root.path / "tmp/v.npy").read_bytes()), 128 + 384 * 4)
        installed = root.run("dpkg-query", "--show",
                             "--showformat=${Installed-Size}", "encoderd")
        print(f"deb of {package.stat().st_size / 1e6:.1f} MB, "
              f"{int(installed.stdout) / 1e3:.1f} installed, first embedding "
              f"after {root.timing()}", flush=True)

    def test_2_changed_flags_survive_another_installation(self):
        before = (root.path / FLAGS[1:]).read_text()
        root.run("dpkg", "--install", "/encoderd.deb")
        self.assertEqual((root.path / FLAGS[1:]).read_text(), before)

    def test_3_it_holds_the_licenses_of_what_is_compiled_in(self):
        text = (root.path / "usr/share/doc/encoderd/copyright").read_text()
        self.assertIn("Apache License", text)
        named = re.findall(r"(?m)^Compiled in, of the package (\S+):$", text)
        self.assertEqual(set(named), BUILT_IN)
        for words in ("Niels Lohmann", "Sean Barrett"):
            self.assertIn(words, text)

    def test_3_a_later_commit_has_a_higher_version(self):
        self.assertIn(f"-1+git{commit('%Y%m%d%H%M%S')}~", root.run(
            "dpkg-query", "--show", "--showformat=${Version}",
            "encoderd").stdout)

    def test_3_its_files_are_of_root_for_all_and_of_the_commits_time(self):
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", package],
                              check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            files = {file.name.removeprefix("./"): file for file in archive}
        date = commit("%s")
        self.assertLess({FLAGS[1:], "usr/share/doc/encoderd/copyright",
                         "usr/share/doc/encoderd/changelog.gz"}, set(files))
        for name, file in files.items():
            everyone = (0o755 if file.isdir() or name.startswith("usr/bin/")
                        else 0o644)
            self.assertEqual(("root", "root", oct(everyone), date),
                             (file.uname, file.gname, oct(file.mode),
                              str(file.mtime)), name)

    def test_3_packed_again_it_has_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = built("deb.sh", folder, umask=0o077)
            self.assertEqual(package.name, again.name)
            # assertEqual would print them.
            self.assertTrue(package.read_bytes() == again.read_bytes())

    def test_3_its_programs_are_hardened(self):
        for name in ("encoderd", "encoderctl"):
            self.assertEqual([], not_hardened(root.path / "usr/bin" / name))

    def test_3_it_recommends_the_authorities_that_tls_trusts(self):
        self.assertEqual("ca-certificates", root.run(
            "dpkg-query", "--show", "--showformat=${Recommends}",
            "encoderd").stdout)

    def test_4_systemd_finds_no_fault_in_the_service(self):
        install("systemd")
        done = root.run("systemd-analyze", "verify", UNIT)
        self.assertEqual(done.stdout, "")
        root.run("systemd-analyze", "security", "--offline=true",
                 f"--threshold={MAX_EXPOSURE}", "encoderd.service")

    def test_5_the_service_may_take_as_long_to_stop_as_the_server(self):
        text = (root.path / UNIT[1:]).read_text()
        stop = int(re.search(r"(?m)^TimeoutStopSec=(\d+)s$", text)[1])
        said = root.run("encoderd", "--helpfull", check=False).stdout
        drain = re.search(r"--drain_timeout .*?default: (\d+)s;", said,
                          re.DOTALL)
        self.assertEqual(stop, int(drain[1]) + 10)

    def test_6_the_service_starts_serves_comes_again_and_leaves(self):
        said = root.boot(SERVICE)
        self.assertNotIn("start without a model: 0", said)
        self.assertIn("event=start_failed code=INVALID_ARGUMENT", said)
        found = dict(re.findall(r"(?m)^([\w ]+):\s+(\S+)", said))
        self.assertGreater(int(found.pop("Uid")), 1000, said)
        self.assertEqual(found, {
            "start": "0", "health": "SERVING", "status": "serving",
            "CapEff": "0000000000000000", "CapBnd": "0000000000000000",
            "NoNewPrivs": "1", "Seccomp": "2", "similarity": "0",
            "reload": "0", "health again": "SERVING", "restarts": "1",
            "stop": "0", "result": "success", "enable": "0", "remove": "0",
            "active": "inactive", "links": "0"}, said)

    def test_7_a_purge_leaves_nothing(self):
        self.assertTrue((root.path / FLAGS[1:]).exists())  # removed alone
        root.run("dpkg", "--purge", "encoderd")
        left = root.run("find", "/", "-xdev", "-path", "/proc", "-prune", "-o",
                        "-name", "encoderd*", "!", "-name", "encoderd.deb",
                        "-print").stdout.split()
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
