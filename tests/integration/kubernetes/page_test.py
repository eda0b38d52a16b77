#!/usr/bin/env python3
"""What the page and the comments of deploy/kubernetes tell people to change:
the namespace, tokens; and what an overlay says of its nodes and its memory."""

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


def spec_of(objects):
    return objects["Deployment", "encoderd"]["spec"]["template"]["spec"]


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

    def test_the_rules_take_a_name_that_is_a_number_to_yaml(self):
        for name in ("123", "null", "1e3"):
            for one in yaml.safe_load_all(rules(name).stdout):
                self.assertEqual(one["metadata"]["namespace"], name)

    def test_the_rules_need_a_name(self):
        for arguments in (("--help",), ("",), ("a", "b"), ("a\nb",)):
            done = rules(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: rules.sh", done.stderr)


class PageTest(unittest.TestCase):
    def test_the_patch_for_tokens_fits_each_overlay_with_tls(self):
        page = (manifests.FOLDER / "README.md").read_text()
        block, = re.findall(r"^```yaml\n(.*?)^```$", page,
                            re.MULTILINE | re.DOTALL)
        patches = yaml.safe_load(block)
        every = tuple(name for name in manifests.COMPONENTS
                      if name != "insecure")
        for overlay, components in itertools.product(manifests.OVERLAYS,
                                                     ((), every)):
            with self.subTest(overlay=overlay, components=components), \
                    tempfile.TemporaryDirectory() as folder:
                before = manifests.built(overlay, components, folder)
                after = manifests.built(overlay, components, folder, patches)
                for one in after.values():
                    self.assertEqual(manifests.findings(one), [])
                spec, container = spec_of(after), spec_of(after)["containers"][0]
                self.assertEqual(
                    container["args"],
                    spec_of(before)["containers"][0]["args"]
                    + ["--bearer_token_file=/access/tokens"])
                mounts = {mount["mountPath"]: mount["name"]
                          for mount in container["volumeMounts"]}
                secrets = {volume["name"]: volume["secret"]["secretName"]
                           for volume in spec["volumes"] if "secret" in volume}
                self.assertEqual(secrets[mounts["/access"]], "encoderd-access")
                self.assertEqual([volume["secret"]["defaultMode"]
                                  for volume in spec["volumes"]
                                  if volume["name"] == mounts["/access"]],
                                 [0o440])
                self.assertEqual(secrets[mounts["/tls"]], "encoderd-tls")


class OverlaysTest(unittest.TestCase):
    def test_a_pod_goes_where_its_image_runs(self):
        for overlay in manifests.OVERLAYS:
            with tempfile.TemporaryDirectory() as folder:
                built = manifests.built(overlay, (), folder)
            self.assertEqual(spec_of(built)["nodeSelector"],
                             {"kubernetes.io/arch": "amd64"})

    def test_the_memory_limit_is_above_what_the_comment_adds_up(self):
        path = manifests.FOLDER / "overlays/cpu/kustomization.yml"
        comment = re.search(r"Memory, by\n(?: +#.*\n)+", path.read_text())[0]
        *parts, total, limit = map(int, re.findall(r"(\d+) MB", comment))
        with tempfile.TemporaryDirectory() as folder:
            built = manifests.built("cpu", (), folder)
        container, = spec_of(built)["containers"]
        self.assertEqual(sum(parts), total)
        self.assertLess(total, limit)
        self.assertEqual(container["resources"]["limits"]["memory"],
                         f"{round(limit * 1e6 / 2**30)}Gi")
        flags = dict(flag[2:].split("=", 1) for flag in container["args"])
        # MiniLM's hidden size, in float.
        self.assertIn(4 * 384 * int(flags["max_queue_tokens"]) // 10**6, parts)

    def test_meshes_are_told_whether_a_port_speaks_tls(self):
        for components, protocols in (
                ((), {"grpc": "https", "http": "https"}),
                (("insecure",), {"grpc": "grpc", "http": "http"})):
            with tempfile.TemporaryDirectory() as folder:
                built = manifests.built("cpu", components, folder)
            ports = {port["name"]: port.get("appProtocol") for port in
                     built["Service", "encoderd"]["spec"]["ports"]}
            self.assertEqual(ports, protocols)

    def test_alerts_name_the_pod(self):
        with tempfile.TemporaryDirectory() as folder:
            built = manifests.built("cpu", (), folder)
        endpoint, = built["ServiceMonitor", "encoderd"]["spec"]["endpoints"]
        self.assertEqual(endpoint["relabelings"], [
            {"sourceLabels": ["__meta_kubernetes_pod_name"],
             "targetLabel": "instance"}])


if __name__ == "__main__":
    unittest.main()
