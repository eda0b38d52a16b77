"""deploy/envoy's Envoy on loopback over given servers, for as long as `with`
lasts, and callers that try each call once."""

import contextlib
import json
import pathlib
import subprocess
import sys

import grpc
import yaml
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy/envoy"
sys.path.insert(0, str(ROOT / "tests/support"))
from callers import Callers  # noqa: E402  after the path
from server_process import eventually, free_port, get  # noqa: E402

TEXT = "A call that is in flight when a server goes away."


def lines_of_readme(name):
    """The YAML that README.md gives for a place of the configuration."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(f"<!-- lines: {name} -->\n```yaml\n")
    if not rest:
        raise ValueError(f"deploy/envoy/README.md has no lines: {name}")
    return rest.partition("```")[0]


class Envoy:
    """certificates: a folder of make_certificates.sh; with it both sides speak
    TLS, by the lines of the README."""

    def __init__(self, program, folder, ports, certificates=None):
        self.folder = pathlib.Path(folder)
        self.port, self.admin = free_port(), free_port()
        self._write(ports, certificates)
        checked = subprocess.run(
            [program, "--mode", "validate", "-c", self.folder / "envoy.yml"],
            text=True, capture_output=True, check=False, timeout=60)
        if checked.returncode:
            raise ValueError(f"not valid: {checked.stdout}{checked.stderr}")
        self._out = (self.folder / "envoy.log").open("w")
        self.process = subprocess.Popen(
            [program, "-c", self.folder / "envoy.yml", "--concurrency", "1",
             "--log-level", "warning", "--use-dynamic-base-id"],
            stdout=self._out, stderr=subprocess.STDOUT)
        try:
            eventually(lambda: self.healthy() == len(ports),
                       "every server healthy")
        except BaseException:
            print((self.folder / "envoy.log").read_text(), file=sys.stderr)
            self.__exit__()
            raise

    def _write(self, ports, certificates):
        config = yaml.safe_load((FOLDER / "envoy.yml").read_text())
        resources = config["static_resources"]
        listener, cluster = resources["listeners"][0], resources["clusters"][0]
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        descriptor = self.folder / "encoder.pb"
        subprocess.run([FOLDER / "descriptor.sh", descriptor], check=True)
        transcoder = manager["http_filters"][0]["typed_config"]
        assert transcoder["proto_descriptor"] == "/etc/envoy/encoder.pb"
        transcoder["proto_descriptor"] = str(descriptor)
        config["admin"]["address"]["socket_address"]["port_value"] = self.admin
        listener["address"]["socket_address"] = {
            "address": "127.0.0.1", "port_value": self.port}
        cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [
            {"endpoint": {"address": {"socket_address": {
                "address": "127.0.0.1", "port_value": port}}}}
            for port in ports]}]
        if certificates:
            for name, place in (("callers", listener["filter_chains"][0]),
                                ("servers", cluster)):
                text = lines_of_readme(name)
                for file, ours in (("tls.crt", "server.pem"),
                                   ("tls.key", "server.key"),
                                   ("ca.crt", "ca.pem")):
                    text = text.replace(f"/etc/envoy/{file}",
                                        f"{certificates}/{ours}")
                text = text.replace("encoderd.encoderd.svc", "localhost")
                place.update(yaml.safe_load(text))
        (self.folder / "envoy.yml").write_text(yaml.safe_dump(config))

    def stats(self):
        text = get(f"http://127.0.0.1:{self.admin}/stats?format=json"
                   "&filter=^cluster.encoderd")
        return {one["name"].removeprefix("cluster.encoderd."): one["value"]
                for one in json.loads(text)["stats"] if "value" in one}

    def healthy(self):
        """How many servers get calls."""
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "envoy.log").read_text())
        with contextlib.suppress(OSError):
            return self.stats().get("membership_healthy", 0)
        return -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()


def callers_of(port, count):
    """Callers that try each call once: no retry is theirs."""
    request = encoder_pb2.EmbedRequest(inputs=[encoder_pb2.Input(text=TEXT)])

    @contextlib.contextmanager
    def connected():
        with grpc.insecure_channel(
                f"127.0.0.1:{port}",
                [("grpc.enable_retries", 0),
                 ("grpc.use_local_subchannel_pool", 1)]) as channel:
            embed = encoder_pb2_grpc.EncoderStub(channel).Embed
            yield lambda: embed(request, timeout=60)

    return Callers([connected] * count)
