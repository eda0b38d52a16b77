#!/usr/bin/env python3
"""deploy/quickstart.sh: its arguments, what it says, and how it ends."""

import os
import shutil
import signal
import socket
import subprocess
import unittest
from contextlib import nullcontext, suppress

from scripts_support import ROOT, ScriptCase


# Ready at once. By TERM it ends as the server does, or with another code. Its
# child, until it runs sleep a copy that traps TERM, has no pipe of the test.
SERVER = ("trap 'echo stopping; rm ready; exec 2> /dev/null; kill -KILL $!; "
          "exit {code}' TERM\n"
          "sleep 60 > /dev/null 2>&1 3>&- 4>&- & touch ready; wait")
GOOD_SERVER, BAD_SERVER = SERVER.format(code=0), SERVER.format(code=3)
READY = "[[ -e ready ]]; exit"
WAIT = "until [[ -e go ]]; do sleep 0.01; done"


class QuickstartTest(ScriptCase):
    def test_a_port_that_is_taken_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for flag in ("--port", "--http_port"):
                for words in ([flag, port], [f"{flag}={port}"]):
                    done = self.run_script("quickstart.sh", "--once", *words)
                    self.assertEqual(1, done.returncode)
                    self.assertIn(f"port {port} of 127.0.0.1 is in use",
                                  done.stderr)

    def test_it_refuses_arguments_that_it_does_not_know(self):
        for arguments in (["--twice"], ["--port"], ["--port", "x"]):
            done = self.run_script("quickstart.sh", *arguments)
            self.assertEqual(1, done.returncode)
            self.assertIn(arguments[0], done.stderr)

    def test_it_says_how_to_use_it(self):
        done = self.run_script("quickstart.sh", "--help")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("--http_port N  metrics", done.stdout)

    def run_build(self, cmake, stdout=subprocess.PIPE):
        """The quick start up to a build by the given stand-in, which fails."""
        for name, text in {
                "dpkg-query": 'for p in "${@:3}"; do echo "ii  all $p"; done',
                "nvidia-smi": "exit 1",
                "cmake": f"[[ $1 == --build ]] || exit 0\n{cmake}\nexit 1",
        }.items():
            self.stand_in(name, text)
        return subprocess.run(
            [ROOT / "deploy/quickstart.sh", "--once"], text=True, timeout=300,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
            check=False, env=dict(
                os.environ, PATH=f"{self.folder}/path:{os.environ['PATH']}"))

    def test_it_shows_the_progress_of_a_build_in_a_log(self):
        done = self.run_build(
            'for i in $(seq 40); do echo "[$i/40] Building $i"; done\n'
            'echo "FAILED: engine/a.o"; echo "a.cc:7: error"')
        self.assertEqual(1, done.returncode)
        said = done.stdout.splitlines()
        progress = [line for line in said if " % (" in line]
        self.assertEqual(11, len(progress), said)
        self.assertIn("100 % (40 of 40 steps", progress[-1])
        self.assertEqual(["FAILED: engine/a.o", "a.cc:7: error"], said[-2:])

    def test_it_leaves_a_terminal_to_the_status_line_of_ninja(self):
        terminal, end = os.openpty()
        with open(terminal, "rb", buffering=0) as terminal:
            with open(end, "wb") as end:
                done = self.run_build(
                    '[[ -t 1 ]] && echo "status $NINJA_STATUS"', stdout=end)
            said = b""
            with suppress(OSError):  # the end of a terminal
                while some := terminal.read(10000):  # each write, or several
                    said += some
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn("status [%f/%t, %p, %es] ", said.decode())

    def test_it_says_how_long_each_step_takes(self):
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
                "deploy/fetch-cutlass.sh": f"echo asked 1<> asked; {WAIT}; exit 1",
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

    def run_once(self, root, **variables):
        return subprocess.run(
            [root / "deploy/quickstart.sh", "--once"], text=True, timeout=300,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
            env=dict(os.environ, **variables,
                     PATH=f"{self.folder}/path:{os.environ['PATH']}"))

    def test_what_the_shell_has_set_for_another_server_does_not_count(self):
        root = self.copy_project(GOOD_SERVER, f"env > asked; {READY}")
        done = self.run_once(root, **{
            f"ENCODERD_{name}": "x" for name in (
                "TLS", "CA_FILE", "CERTIFICATE_FILE", "KEY_FILE", "SERVER_NAME",
                "TOKEN", "TOKEN_FILE", "TARGET")})
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        set_for_it = [line for line in (root / "asked").read_text().splitlines()
                      if line.startswith("ENCODERD_") and line.endswith("=x")]
        self.assertEqual(["ENCODERD_TARGET=x"], set_for_it)  # --target wins

    def test_once_keeps_the_log_of_the_server_apart(self):
        root = self.copy_project(
            f"echo serving; echo warning >&2; {GOOD_SERVER}",
            READY)
        done = self.run_once(root)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("\nlog: build/release/quickstart.log\n", done.stdout)
        self.assertIn("\ntable\n", done.stdout)
        self.assertNotIn("serving", done.stdout)
        log = (root / "build/release/quickstart.log").read_text("utf-8")
        self.assertEqual(log, "serving\nwarning\nstopping\n")
        self.assertTrue(done.stdout.endswith(
            "\n-- done; to keep a server running: deploy/quickstart.sh\n"))

    def test_it_says_so_when_it_builds_without_the_gpu(self):
        root = self.copy_project(GOOD_SERVER, READY)
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

    def test_once_shows_the_log_of_a_server_that_fails(self):
        done = self.run_once(
            self.copy_project("echo no such model >&2; exit 1", "exit 1"))
        self.assertEqual(1, done.returncode)
        self.assertIn("no such model\n", done.stderr)
        self.assertIn("the server failed to start; its log is above",
                      done.stderr)

    def test_once_fails_with_a_server_that_fails_to_stop(self):
        done = self.run_once(self.copy_project(BAD_SERVER, READY))
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("table\n", done.stdout)
        self.assertNotIn("-- done", done.stdout)
        self.assertIn("stopping\n", done.stderr)
        self.assertIn("the server ended with exit code 3 when it was stopped; "
                      "its log is above", done.stderr)

    def test_it_waits_for_a_server_as_long_as_it_says(self):
        root = self.copy_project(GOOD_SERVER,
                                 'echo "$@" > asked; sleep 1; exit 1')
        script = root / "deploy/quickstart.sh"
        script.write_text(script.read_text("utf-8").replace(
            "patience=30", "patience=1"), encoding="utf-8")
        done = self.run_once(root)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("the server was not ready within 1 s", done.stderr)
        self.assertIn("--timeout=1s", (root / "asked").read_text("utf-8"))

    def interrupt(self, root, *arguments, after, pipe=None, by=None):
        """The quick start that gets Ctrl-C, or what `by` does, once it has
        printed `after`, or its child has to the named pipe; then the file `go`
        appears, for which the stand-ins of WAIT wait."""
        with subprocess.Popen(
                [root / "deploy/quickstart.sh", *arguments], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A shell cannot trap what was ignored when it began.
                preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                 signal.SIG_DFL),
                env=dict(os.environ, PATH=f"{self.folder}/path:"
                                          f"{os.environ['PATH']}")) as process:
            with open(pipe) if pipe else nullcontext(process.stdout) as lines:
                next(line for line in lines if after in line)
            if by:
                by()
            else:
                process.send_signal(signal.SIGINT)
            (root / "go").touch()
            said, errors = process.communicate(timeout=300)
        return process.returncode, said, errors

    def test_it_fails_where_it_is_interrupted_before_the_example(self):
        # Only once its child runs: bash 5.2 may not end by a Ctrl-C that comes
        # just when it starts one.
        health = f"echo asked 1<> asked; {WAIT}; exit 1"
        for arguments in ([], ["--once"]):
            root = self.copy_project(GOOD_SERVER, health)
            os.mkfifo(root / "asked")
            code, said, _ = self.interrupt(
                root, "--port=0", "--http_port=0", *arguments, after="asked",
                pipe=root / "asked")
            self.assertEqual(130, code)
            self.assertNotIn("table", said)
            shutil.rmtree(self.folder / "project")

    def test_it_ends_where_pip_makes_a_failure_of_the_interrupt(self):
        root = self.copy_project(GOOD_SERVER, READY)
        (root / "build/release/build.ninja").unlink()
        self.stand_in("nvidia-smi", "echo 9.0")
        self.stand_in("cmake", "touch configured")
        os.mkfifo(root / "asked")
        code, _, errors = self.interrupt(root, "--once", after="asked",
                                         pipe=root / "asked")
        self.assertEqual((130, ""), (code, errors))
        self.assertFalse((root / "configured").exists())

    def test_a_port_that_is_taken_during_the_build_is_named(self):
        for flag in ("--port", "--http_port"):
            root = self.copy_project(GOOD_SERVER, READY)
            self.stand_in("cmake", WAIT)
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))  # until it listens, not in use
                port = taken.getsockname()[1]
                code, said, errors = self.interrupt(
                    root, "--once", f"{flag}={port}", after="-- build",
                    by=taken.listen)
            self.assertEqual(1, code)
            self.assertIn(f"port {port} of 127.0.0.1 is in use", errors)
            self.assertNotIn("table", said)
            shutil.rmtree(root)

    def test_it_takes_no_other_server_for_one_that_has_ended(self):
        root = self.copy_project(
            "echo $$ > number; mv number ended; exit 1",
            "until [[ -e ended ]]; do sleep 0.01; done\n"
            "while kill -0 $(< ended); do sleep 0.01; done; exit 0")
        done = self.run_once(root)
        self.assertEqual(1, done.returncode)
        self.assertIn("the server failed to start", done.stderr)
        self.assertNotIn("table", done.stdout)

    def test_a_copy_of_a_folder_with_a_build_does_not_build_the_other(self):
        root = self.copy_project(GOOD_SERVER, READY)
        self.stand_in("cmake", "[[ $1 == --build ]] && exit\n"
                               "echo configured for another folder >&2; exit 1")
        done = self.run_once(root)
        self.assertEqual(1, done.returncode)
        self.assertIn("configured for another folder\n", done.stderr)
        self.assertIn("delete build/release and start again", done.stderr)
        self.assertNotIn("table", done.stdout)

    def test_it_succeeds_where_the_server_is_stopped_after_the_example(self):
        for server, expected in ((GOOD_SERVER, 0), (BAD_SERVER, 1)):
            code, _, errors = self.interrupt(
                self.copy_project(server, READY),
                "--port=0", "--http_port=0", after="Ctrl-C stops the server")
            self.assertEqual(expected, code, errors)
            self.assertEqual(expected == 1, "ended with exit code 3" in errors)
            shutil.rmtree(self.folder / "project")


if __name__ == "__main__":
    unittest.main()
