#!/usr/bin/env python3
"""The image of the Dockerfile: what is in it, and how it serves and stops.

    ENCODERD_TEST_MODEL=FOLDER ENCODERD_TEST_PROGRAMS=build/bench/bin \\
      tests/integration/container/container_test.py

Takes minutes, the compile of the image included; tests/nightly.sh runs it.
ENCODERD_TEST_IMAGE names an image that is there already.
"""

import json
import os
import pathlib
import re
import sys
import tarfile
import tempfile
import threading
import time
import unittest

import grpc
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from images import (BASE, BUILT_IN, ROOT, Container, build, check_tools, inspect,
                    make_base, podman, run)

sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import (  # noqa: E402  after the path
    Server, eventually, free_port, get)

PROGRAMS = pathlib.Path(os.environ.get("ENCODERD_TEST_PROGRAMS",
                                       ROOT / "build/bench/bin"))
MAX_BYTES = 66 * 1000 * 1000
MODEL = os.environ.get("ENCODERD_TEST_MODEL")
SENTENCES = ROOT / "tests/golden/sentences.txt"
IMAGE = os.environ.get("ENCODERD_TEST_IMAGE", "localhost/encoderd-test")
REVISION = "0123456789abcdef"
CALLS = 32
INPUTS = 4


def setUpModule():
    assert MODEL, "ENCODERD_TEST_MODEL names no model: deploy/fetch-model.sh"
    check_tools()
    if "ENCODERD_TEST_IMAGE" not in os.environ:
        make_base()
        build(IMAGE, "--target=cpu", f"--build-arg=BASE={BASE}",
              f"--build-arg=REVISION={REVISION}")


class Served:
    """A container on its own ports, once it serves."""

    def __init__(self, image=IMAGE, options=("-v", f"{MODEL}:/model:ro"),
                 flags=()):
        self.address = f"127.0.0.1:{free_port()}"
        self.http = f"http://127.0.0.1:{free_port()}"
        self.container = Container(
            image, "--model=/model", f"--listen={self.address}",
            f"--http_listen={self.http.removeprefix('http://')}", *flags,
            options=["-e", f"ENCODERD_TARGET={self.address}", *options])
        try:
            eventually(self._serving, "event=serving")
        except BaseException:
            self.container.close()
            raise

    def _serving(self):
        state = self.container.state()
        assert state["Running"], self.container.log()
        return "event=serving" in self.container.log()

    def metrics(self):
        return get(f"{self.http}/metrics")

    def embed(self, output):
        run(PROGRAMS / "encoderctl", "embed", f"--target={self.address}",
            f"--input={SENTENCES}", "--truncate=end", f"--output={output}")


class ImageTest(unittest.TestCase):
    """What is in it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        archive = pathlib.Path(folder.name, "image.tar")
        container = podman("create", IMAGE).stdout.strip()
        cls.addClassCleanup(podman, "rm", container)
        podman("export", "--output", archive, container)
        cls.files = tarfile.open(archive)
        cls.addClassCleanup(cls.files.close)
        cls.members = {member.name.removeprefix("./"): member
                       for member in cls.files}

    def content(self, name):
        return self.files.extractfile(self.members[name]).read()

    def test_its_size_is_bounded(self):
        size = inspect(IMAGE)["Size"]
        print(f"image of {size / 1e6:.1f} MB", flush=True)
        self.assertLess(size, MAX_BYTES)
        for page in ("README.md", "deploy/README.md"):
            self.assertIn(f"image is at most {MAX_BYTES // 10**6} MB",
                          (ROOT / page).read_text(encoding="utf-8"))

    def test_its_only_programs_are_ours_and_the_loader(self):
        programs = []
        for name, member in self.members.items():
            if not member.isfile() or not member.mode & 0o111:
                continue
            if not re.search(r"\.so(\.\d+)*$", name):
                programs.append(name)
        self.assertEqual(sorted(programs), ["usr/local/bin/encoderctl",
                                            "usr/local/bin/encoderd"])
        names = {pathlib.PurePath(name).name
                 for name, member in self.members.items()
                 if not member.isdir()}
        self.assertFalse(names & {"sh", "bash", "dash", "busybox", "apt", "dpkg",
                                  "python3", "perl"})

    def test_nothing_is_setuid_or_writable_for_all(self):
        self.assertGreater(len(self.members), 100)
        for name, member in self.members.items():
            if member.issym():
                continue
            self.assertEqual(member.mode & 0o6002, 0, name)

    def test_each_package_has_its_license_and_is_listed(self):
        sbom = json.loads(self.content("usr/share/doc/encoderd/sbom.spdx.json"))
        self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
        packages = {package["name"]: package for package in sbom["packages"]}
        self.assertEqual(packages["encoderd"]["sourceInfo"],
                         f"revision {self.revision()}")
        self.assertLessEqual(BUILT_IN, set(packages))
        listed = {name.rpartition("/")[2] for name in self.members
                  if name.startswith("var/lib/dpkg/status.d/")}
        self.assertEqual(listed - {""} | {"encoderd"} | BUILT_IN,
                         set(packages))
        self.assertIn("usr/share/doc/encoderd/LICENSE", self.members)
        for name in set(packages) - {"encoderd"}:
            self.assertTrue(packages[name]["versionInfo"], name)
            text = self.content(f"usr/share/doc/{name}/copyright")
            for common in set(re.findall(
                    rb"/usr/share/common-licenses/([\w.+-]*\w)", text)):
                self.assertIn(f"usr/share/common-licenses/{common.decode()}",
                              self.members)

    def test_it_trusts_the_authorities_of_the_system(self):
        self.assertIn(b"-----BEGIN CERTIFICATE-----", self.content(
            "etc/ssl/certs/ca-certificates.crt"))

    def revision(self):
        labels = inspect(IMAGE)["Config"]["Labels"]
        return labels["org.opencontainers.image.revision"]

    def test_its_labels_name_version_and_revision(self):
        version = re.search(r"project\(encoderd VERSION (\S+)",
                            (ROOT / "CMakeLists.txt").read_text())[1]
        labels = inspect(IMAGE)["Config"]["Labels"]
        self.assertEqual(labels["org.opencontainers.image.version"], version)
        self.assertEqual(labels["org.opencontainers.image.licenses"],
                         "Apache-2.0")
        self.assertNotEqual(self.revision(), "unknown")


class ServingTest(unittest.TestCase):
    """How it serves, on ports that are not the default ones."""

    @classmethod
    def setUpClass(cls):
        cls.served = Served()
        cls.addClassCleanup(cls.served.container.close)

    def test_its_vectors_have_the_bits_of_a_server_outside(self):
        with tempfile.TemporaryDirectory() as folder:
            outside = self.enterContext(Server(PROGRAMS / "encoderd", MODEL))
            inside = pathlib.Path(folder, "inside.npy")
            beside = pathlib.Path(folder, "outside.npy")
            self.served.embed(inside)
            run(PROGRAMS / "encoderctl", "embed", f"--target={outside.address}",
                f"--input={SENTENCES}", "--truncate=end", f"--output={beside}")
            texts = SENTENCES.read_text(encoding="utf-8").count("\n")
            self.assertEqual(len(inside.read_bytes()), 128 + texts * 384 * 4)
            self.assertEqual(inside.read_bytes(), beside.read_bytes())

    def test_the_first_embedding_comes_soon(self):
        """From an archive of the image, as a registry's download leaves it."""
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder, "image.tar")
            podman("save", "--output", archive, IMAGE)
            begin = time.monotonic()
            run("podman", "--root", f"{folder}/storage", "--runroot",
                f"{folder}/run", "load", "--input", archive)
            loaded = time.monotonic()
            vectors = pathlib.Path(folder, "vectors.npy")
            served = Served()
            try:
                served.embed(vectors)
            finally:
                served.container.close()
            end = time.monotonic()
            self.assertGreater(vectors.stat().st_size, 0)
        print(f"image loaded in {loaded - begin:.1f} s, embeddings "
              f"{end - loaded:.1f} s after its start", flush=True)

    def test_it_can_be_scraped(self):
        with tempfile.TemporaryDirectory() as folder:
            self.served.embed(pathlib.Path(folder, "vectors.npy"))
        metrics = self.served.metrics()
        # All series are there from the start, at 0.
        self.assertRegex(metrics, r'(?m)^encoderd_requests_total\{.*"Embed'
                                  r'(Stream)?",.*outcome="ok"\} [1-9]')
        self.assertRegex(metrics, r"(?m)^encoderd_build_info\{")
        get(f"{self.served.http}/readyz")  # raises unless it is 200

    def test_its_health_check_asks_where_the_server_listens(self):
        container = self.served.container
        done = podman("healthcheck", "run", container.id, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = container.execute("encoderctl", "health", "--timeout=1s",
                                 options=["-e", "ENCODERD_TARGET=127.0.0.1:1"])
        self.assertEqual(done.returncode, 1, done.stdout)

    def test_it_runs_without_rights_on_a_file_system_that_is_read_only(self):
        container = self.served.container
        process = pathlib.Path("/proc", str(container.state()["Pid"]))
        status = (process / "status").read_text()
        self.assertRegex(status, r"(?m)^Uid:\s+65532\s+65532\s+65532\s+65532$")
        self.assertRegex(status, r"(?m)^Gid:\s+65532\s")
        self.assertRegex(status, r"(?m)^CapEff:\s+0+$")
        self.assertRegex(status, r"(?m)^CapBnd:\s+0+$")
        self.assertRegex(status, r"(?m)^NoNewPrivs:\s+1$")
        self.assertRegex(status, r"(?m)^Seccomp:\s+2$")  # the default filter
        mounts = (process / "mountinfo").read_text()
        self.assertRegex(mounts, r"(?m)^\S+ \S+ \S+ \S+ / ro[, ]")
        for folder in ("/", "/usr/local/bin", "/model"):
            done = container.execute("encoderctl", "embed", "a text",
                                     f"--output={folder}/vectors.npy")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("cannot write to", done.stdout)

    def test_it_has_no_shell_to_start(self):
        for shell in ("sh", "/bin/sh", "bash", "ls"):
            done = self.served.container.execute(shell)
            self.assertIn(done.returncode, (126, 127), done.stdout)


class StoppingTest(unittest.TestCase):
    def test_term_answers_every_call_in_flight_and_exits_with_0(self):
        # Time enough on any machine, and one thread, which no machine makes so
        # fast that the calls are gone when TERM comes; what is tested is that
        # nobody is left out.
        served = Served(flags=["--drain_timeout=10m", "--threads=1"],
                        options=["-v", f"{MODEL}:/model:ro",
                                 "--stop-timeout=610"])
        self.addCleanup(served.container.close)
        request = encoder_pb2.EmbedRequest(
            inputs=[encoder_pb2.Input(text="hello " * 254)] * INPUTS)
        codes = []

        def call():
            with grpc.insecure_channel(served.address, [
                    ("grpc.use_local_subchannel_pool", 1),
                    ("grpc.enable_retries", 0)]) as channel:
                try:
                    encoder_pb2_grpc.EncoderStub(channel).Embed(request,
                                                                timeout=600)
                    codes.append("OK")
                except grpc.RpcError as error:
                    codes.append(f"{error.code().name}: {error.details()}")

        callers = [threading.Thread(target=call) for _ in range(CALLS)]
        for caller in callers:
            caller.start()
        accepted = re.compile(r"(?m)^encoderd_input_tokens_count\S* "
                              rf"{CALLS * INPUTS}$")
        eventually(lambda: accepted.search(served.metrics()),
                   "all calls accepted")
        code = served.container.stop()
        for caller in callers:
            caller.join()
        log = served.container.log()
        self.assertEqual(codes, ["OK"] * CALLS, log)
        self.assertEqual(code, 0, log)
        in_flight = re.search(r"event=draining in_flight=(\d+)", log)
        self.assertGreater(int(in_flight[1]), CALLS // 2, log)
        self.assertIn("unanswered=0", log)
        print(f"{in_flight[1]} calls in flight at TERM, all answered", flush=True)


class QuotaTest(unittest.TestCase):
    def test_a_quota_of_one_cpu_gives_one_compute_thread(self):
        sessions = []
        for options in ([], ["--cpus=1"]):
            served = Served(options=["-v", f"{MODEL}:/model:ro", *options])
            self.addCleanup(served.container.close)
            found = re.search(r" sessions=(\d+)", served.container.log())
            sessions.append(int(found[1]))
        self.assertEqual(sessions[1], 1)
        if os.cpu_count() >= 4:  # at least two cores, however they are counted
            self.assertGreater(sessions[0], 1)


class ModelInsideTest(unittest.TestCase):
    def test_two_lines_put_a_model_inside(self):
        image = "localhost/encoderd-model-test"
        build(image, dockerfile="-", context=MODEL,
              input=f"FROM {IMAGE}\nCOPY . /model\n")
        self.addCleanup(podman, "rmi", image)
        served = Served(image, options=())
        self.addCleanup(served.container.close)
        with tempfile.TemporaryDirectory() as folder:
            served.embed(pathlib.Path(folder, "vectors.npy"))
        self.assertEqual(served.container.stop(), 0)


if __name__ == "__main__":
    unittest.main()
