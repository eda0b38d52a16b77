#!/usr/bin/env python3
"""deploy/kubernetes without a cluster: every overlay with every component is
built by Kustomize, held by the APIs' own schemas, and consistent; a server
runs with the very flags of its pod; the queries that scale it give what they
should.

    manifests_test.py --server=build/dev/bin/encoderd_fake_server
"""

import argparse
import contextlib
import copy
import functools
import re
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml

import manifests

sys.path.insert(0, str(manifests.ROOT / "tests/support"))
from server_process import PATIENCE, Server  # noqa: E402  after the path

SERVER = None  # set by main
MODEL = "fake=batch_us:2000"


def pod_of(objects):
    return objects["Deployment", "encoderd"]["spec"]["template"]


def container_of(objects):
    return pod_of(objects)["spec"]["containers"][0]


def flags_of(objects):
    """{name: value} of the container's arguments."""
    return dict(re.fullmatch(r"--(\w+)(?:=(.*))?", argument).groups()
                for argument in container_of(objects)["args"])


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", text).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def each(test):
    """The test, for every overlay with every set of components."""
    @functools.wraps(test)
    def run(self):
        for (overlay, components), objects in self.built.items():
            with self.subTest(overlay=overlay, components=components):
                test(self, {overlay, *components}, objects)
    return run


class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.built = {choice: manifests.built(*choice, folder)
                     for choice in manifests.choices()}
        cls.rules = manifests.by_name(subprocess.run(
            [manifests.FOLDER / "rules.sh"], text=True, check=True,
            capture_output=True).stdout)

    def test_what_is_shipped_is_an_overlay_without_components(self):
        for overlay in manifests.OVERLAYS:
            done = subprocess.run(
                [manifests.KUBECTL, "kustomize",
                 manifests.FOLDER / "overlays" / overlay], text=True,
                capture_output=True, check=True, timeout=60)
            self.assertEqual(manifests.by_name(done.stdout),
                             self.built[overlay, ()])

    def test_the_schemas_hold_every_object(self):
        kinds = set()
        for choice, objects in (*self.built.items(), ("rules", self.rules)):
            for one in objects.values():
                kinds.add(one["kind"])
                self.assertEqual(manifests.findings(one), [], choice)
        self.assertEqual(kinds, {
            "Namespace", "Deployment", "Service", "PodDisruptionBudget",
            "HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor",
            "ScaledObject", "Certificate", "PrometheusRule"})

    def test_a_slip_in_any_kind_is_found(self):
        objects = {**self.built["cpu", ("cert-manager", "keda")],
                   **self.built["cpu", ()], **self.rules}
        for (kind, name), one in objects.items():
            broken = copy.deepcopy(one)
            broken.setdefault("spec", {})["slip"] = 1
            self.assertIn("slip", "\n".join(manifests.findings(broken)),
                          (kind, name))
        broken = copy.deepcopy(objects["Deployment", "encoderd"])
        broken["spec"]["template"]["spec"]["containers"][0]["ports"] = "8400"
        self.assertEqual(len(manifests.findings(broken)), 2)  # each version
        broken = copy.deepcopy(objects["ScaledObject", "encoderd"])
        broken["spec"]["triggers"] = [{"type": 1}]
        self.assertTrue(manifests.findings(broken))

    def test_the_rules_are_those_of_the_other_installations(self):
        for kind in ("rules", "alerts"):
            self.assertEqual(
                self.rules["PrometheusRule", f"encoderd-{kind}"]["spec"],
                yaml.safe_load((manifests.ROOT / "deploy/prometheus" /
                                f"encoderd.{kind}.yml").read_text()))

    @each
    def test_the_grace_fits_the_drain(self, choice, objects):
        flags = flags_of(objects)
        self.assertEqual(
            pod_of(objects)["spec"]["terminationGracePeriodSeconds"],
            seconds(flags["drain_delay"])
            + seconds(flags["drain_timeout"]) + 10)

    @each
    def test_leaving_is_noticed_within_the_drain_delay(self, choice, objects):
        probe = container_of(objects)["readinessProbe"]
        self.assertLessEqual(
            probe["periodSeconds"] * probe["failureThreshold"],
            seconds(flags_of(objects)["drain_delay"]))

    @each
    def test_the_pod_has_no_rights(self, choice, objects):
        spec, container = pod_of(objects)["spec"], container_of(objects)
        self.assertEqual(len(spec["containers"]), 1)
        self.assertEqual(spec["securityContext"], {
            "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532,
            "fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}})
        self.assertEqual(container["securityContext"], {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}})
        self.assertIs(spec["automountServiceAccountToken"], False)
        self.assertIn("memory", container["resources"]["limits"])
        for mount in container.get("volumeMounts", []):
            self.assertIs(mount["readOnly"], True)

    @each
    def test_selectors_and_ports_are_those_of_the_pods(self, choice, objects):
        labels = pod_of(objects)["metadata"]["labels"]
        ports = {port["name"]: port["containerPort"]
                 for port in container_of(objects)["ports"]}
        flags = flags_of(objects)
        self.assertEqual(flags["listen"], f"0.0.0.0:{ports['grpc']}")
        self.assertEqual(flags["http_listen"], f"0.0.0.0:{ports['http']}")
        service = objects["Service", "encoderd"]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        for port in service["spec"]["ports"]:
            # Callers of a headless Service use the pod's own port.
            self.assertEqual(port["port"], ports[port["targetPort"]])
        selectors = [
            service["spec"]["selector"],
            objects["NetworkPolicy", "encoderd"]["spec"]["podSelector"][
                "matchLabels"]]
        selectors += [objects[kind, "encoderd"]["spec"]["selector"][
            "matchLabels"] for kind in (
                "Deployment", "PodDisruptionBudget", "ServiceMonitor")]
        for selector in selectors:
            self.assertTrue(selector)
            self.assertLessEqual(selector.items(), labels.items())
        for rule in objects["NetworkPolicy", "encoderd"]["spec"]["ingress"]:
            self.assertLessEqual(
                {port["port"] for port in rule["ports"]}, set(ports))
        monitor = objects["ServiceMonitor", "encoderd"]["spec"]
        for endpoint in monitor["endpoints"]:
            self.assertIn(endpoint["port"],
                          {port["name"] for port in service["spec"]["ports"]})
        # What the alerts look for.
        self.assertEqual(service["metadata"]["labels"][
            monitor["jobLabel"]], "encoderd")
        for one in objects.values():
            if one["kind"] != "Namespace":
                self.assertEqual(one["metadata"]["namespace"], "encoderd")

    @each
    def test_one_autoscaler_scales_the_deployment(self, choice, objects):
        kind = ("ScaledObject" if "keda" in choice
                else "HorizontalPodAutoscaler")
        scalers = [key for key in objects if key[0] in (
            "ScaledObject", "HorizontalPodAutoscaler")]
        self.assertEqual(scalers, [(kind, "encoderd")])
        self.assertEqual(objects[scalers[0]]["spec"]["scaleTargetRef"][
            "name"], "encoderd")
        self.assertNotIn("replicas", objects["Deployment",
                                             "encoderd"]["spec"])

    @each
    def test_the_overlay_limits_the_pods_of_either_autoscaler(self, choice,
                                                              objects):
        limit = 4 if "cuda" in choice else 8
        if "keda" not in choice:
            scaler = objects["HorizontalPodAutoscaler", "encoderd"]["spec"]
            self.assertEqual(scaler["maxReplicas"], limit)
            return
        scaler = objects["ScaledObject", "encoderd"]["spec"]
        self.assertEqual(scaler["maxReplicaCount"], limit)
        # A fleet at its limit loses no pods when Prometheus is lost.
        self.assertEqual(scaler["fallback"]["replicas"], limit)
        for trigger in scaler["triggers"]:
            # The fallback is for this type only, and for errors only.
            self.assertEqual(trigger["metricType"], "AverageValue")
            self.assertEqual(trigger["metadata"]["ignoreNullValues"], "false")

    @each
    def test_tls_is_whole_or_chosen_against(self, choice, objects):
        container, spec = container_of(objects), pod_of(objects)["spec"]
        plain = "insecure" in choice
        for probe in ("startup", "readiness", "liveness"):
            self.assertEqual(
                container[f"{probe}Probe"]["httpGet"]["scheme"],
                "HTTP" if plain else "HTTPS")
        flags = flags_of(objects)
        self.assertEqual("insecure" in flags, plain)
        monitor = objects["ServiceMonitor", "encoderd"]["spec"]
        self.assertEqual(monitor["endpoints"][0]["scheme"],
                         "http" if plain else "https")
        secrets = [volume["secret"]["secretName"]
                   for volume in spec.get("volumes", []) if "secret" in volume]
        mounts = {mount["mountPath"]: mount["name"]
                  for mount in container.get("volumeMounts", [])}
        if plain:
            self.assertEqual(secrets, [])
            self.assertNotIn("tls_certificate_file", flags)
            self.assertNotIn("/tls", mounts)
            return
        self.assertEqual(secrets, ["encoderd-tls"])
        self.assertEqual(mounts["/tls"], "tls")
        self.assertEqual(flags["tls_certificate_file"], "/tls/tls.crt")
        self.assertEqual(flags["tls_key_file"], "/tls/tls.key")
        tls = monitor["endpoints"][0]["tlsConfig"]
        self.assertEqual(tls["ca"]["secret"]["name"], "encoderd-tls")
        if "cert-manager" in choice:
            made = objects["Certificate", "encoderd"]["spec"]
            self.assertEqual(made["secretName"], "encoderd-tls")
            self.assertIn(tls["serverName"], made["dnsNames"])
            self.assertIn("encoderd.encoderd.svc", made["dnsNames"])

    @each
    def test_the_model_comes_from_the_image_or_the_claim(self, choice, objects):
        mounts = {mount["mountPath"]: mount["name"] for mount in
                  container_of(objects).get("volumeMounts", [])}
        self.assertEqual(flags_of(objects)["model"], "/model")
        self.assertEqual("/model" in mounts, "model-claim" in choice)

    @each
    def test_a_gpu_is_asked_for_where_one_is_used(self, choice, objects):
        limits = container_of(objects)["resources"]["limits"]
        self.assertEqual("nvidia.com/gpu" in limits, "cuda" in choice)
        self.assertEqual(flags_of(objects).get("device"),
                         "cuda" if "cuda" in choice else None)
        # Without a limit there is a compute thread a core of the node.
        if "cpu" in choice:
            self.assertIn("cpu", limits)


class QueriesTest(unittest.TestCase):
    """What the adapter and KEDA ask, by promtool over the recording rules."""

    RULES = manifests.ROOT / "deploy/prometheus/encoderd.rules.yml"
    # Of pod a, with 2 s of backlog, half of the time busy; of b, which hangs
    # with calls in its queue; of c, in another namespace.
    PODS = (("encoderd", "a"), ("encoderd", "b"), ("other", "c"))
    SERIES = {
        'encoderd_queue_tokens{%s}': ("400x99", "5x99", "900x99"),
        'encoderd_tokens_total{%s}': ("0+1500x99", "7x99", "0+1500x99"),
        'encoderd_stage_duration_seconds_sum{stage="compute",%s}':
            ("0+15x99", "0+30x99", "0+30x99"),
        'encoderd_compute_threads{%s}': ("2x99", "2x99", "2x99"),
    }

    def promtool(self, cases):
        series = [
            {"series": name % f'namespace="{space}",pod="{pod}",model="m"',
             "values": value}
            for name, values in self.SERIES.items()
            for (space, pod), value in zip(self.PODS, values)]
        tests = [{"interval": "15s", "input_series": series,
                  "promql_expr_test": cases}]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"rule_files": [str(self.RULES)],
                            "evaluation_interval": "15s", "tests": tests},
                           file)
            file.flush()
            return subprocess.run(["promtool", "test", "rules", file.name],
                                  text=True, capture_output=True, check=False)

    def expect(self, cases):
        done = self.promtool(cases)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        cases[0]["exp_samples"][0]["value"] += 1
        self.assertNotEqual(self.promtool(cases).returncode, 0)

    def test_the_adapter_gives_each_pod_what_the_autoscaler_asks_for(self):
        rules = yaml.safe_load((manifests.FOLDER / "adapter.yml").read_text())
        hpa = yaml.safe_load(
            (manifests.FOLDER / "base/autoscaler.yml").read_text())
        self.assertEqual(
            {rule["name"]["as"] for rule in rules},
            {one["pods"]["metric"]["name"] for one in hpa["spec"]["metrics"]})
        cases = []
        for rule, values in zip(rules, ((2, 60), (0.5, 1))):
            series = re.match(r'\{__name__="([^"]+)"', rule["seriesQuery"])[1]
            query = rule["metricsQuery"]
            for part, text in (("Series", series), ("GroupBy", "pod"),
                               ("LabelMatchers", 'namespace="encoderd",'
                                                 'pod=~"a|b"')):
                query = query.replace(f"<<.{part}>>", text)
            cases.append({"expr": query, "eval_time": "10m", "exp_samples": [
                {"labels": '{pod="%s"}' % pod, "value": value}
                for pod, value in zip("ab", values)]})
        self.expect(cases)

    def test_keda_gets_the_sums_over_the_pods(self):
        scaled = yaml.safe_load((manifests.FOLDER / "components/keda"
                                 / "scaledobject.yml").read_text())
        queries = [trigger["metadata"]["query"]
                   for trigger in scaled["spec"]["triggers"]]
        self.assertEqual(len(queries), 2)
        self.expect([{"expr": query, "eval_time": "10m",
                      "exp_samples": [{"labels": "{}", "value": value}]}
                     for query, value in zip(queries, (62, 1.5))])


class ServerTest(unittest.TestCase):
    """The flags of the pod, given to a server on loopback."""

    def probe(self, objects, server, name, context):
        asked = container_of(objects)[f"{name}Probe"]["httpGet"]
        self.assertEqual(asked["port"], "http")
        url = f"{asked['scheme'].lower()}://127.0.0.1:{server.http}"
        try:
            with urllib.request.urlopen(url + asked["path"], timeout=30,
                                        context=context) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def check(self, overlay, components, tls):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            objects = manifests.built(overlay, components, folder)
            subprocess.run([manifests.ROOT / "tests/support"
                            / "make_certificates.sh", folder], check=True,
                           capture_output=True)
            for name in ("tls.crt", "tls.key"):
                subprocess.run(["cp", f"{folder}/server"
                                + (".pem" if name == "tls.crt" else ".key"),
                                f"{folder}/{name}"], check=True)
            flags = [flag.replace("/tls/", f"{folder}/")
                     for flag in container_of(objects)["args"]
                     if not re.match("--(model|listen|http_listen)=", flag)]
            # The kubelet does not check the certificate, either.
            context = ssl._create_unverified_context() if tls else None

            def probes(server, *names):
                return [self.probe(objects, server, name, context)
                        for name in names]

            loading = stack.enter_context(
                Server(SERVER, MODEL + ",load_ms:3600000", *flags,
                       wait_for=None))
            self.assertEqual(
                probes(loading, "startup", "liveness", "readiness"),
                [200, 200, 503])
            server = stack.enter_context(Server(SERVER, MODEL, *flags))
            self.assertEqual(
                probes(server, "startup", "liveness", "readiness"),
                [200, 200, 200])
            began = time.monotonic()
            server.process.terminate()
            server.wait_for("event=draining")
            self.assertEqual(probes(server, "liveness", "readiness"),
                             [200, 503])
            self.assertEqual(server.process.wait(PATIENCE), 0)
            self.assertGreaterEqual(time.monotonic() - began,
                                    seconds(flags_of(objects)["drain_delay"]))

    def test_probes_see_a_server_come_and_go_over_tls(self):
        self.check("cpu", (), tls=True)

    def test_probes_see_a_server_come_and_go_without_tls(self):
        self.check("cpu", ("insecure",), tls=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True,
                        help="encoderd_fake_server, for the pod's flags")
    arguments, rest = parser.parse_known_args()
    SERVER = arguments.server
    unittest.main(argv=[sys.argv[0], *rest])
