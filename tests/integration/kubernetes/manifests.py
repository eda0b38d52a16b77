"""What deploy/kubernetes builds, as objects, and what the APIs' own schemas
find wrong with one."""

import itertools
import pathlib
import subprocess
import sys

import cloudcoil.models.cert_manager.v1 as cert_manager
import cloudcoil.models.keda.v1alpha1 as keda
import cloudcoil.models.prometheus_operator.v1 as operator
import kubernetes_validate
import pydantic
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
from lost_fields import lost_fields  # noqa: E402  after the path

FOLDER = ROOT / "deploy/kubernetes"
# kubectl's wheel puts it next to Python.
KUBECTL = pathlib.Path(sys.executable).parent / "kubectl"
OVERLAYS = tuple(sorted(path.name for path in
                        (FOLDER / "overlays").iterdir()))
COMPONENTS = tuple(sorted(path.name for path in
                          (FOLDER / "components").iterdir()))
# The oldest version that a page of ours promises, and the newest known here.
VERSIONS = ("1.29", "1.37")
MODELS = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): operator.ServiceMonitor,
    ("monitoring.coreos.com/v1", "PrometheusRule"): operator.PrometheusRule,
    ("keda.sh/v1alpha1", "ScaledObject"): keda.ScaledObject,
    ("cert-manager.io/v1", "Certificate"): cert_manager.Certificate,
}


def choices():
    """Each overlay with each set of components."""
    for overlay in OVERLAYS:
        for count in range(len(COMPONENTS) + 1):
            for components in itertools.combinations(COMPONENTS, count):
                yield overlay, components


def built(overlay, components, folder, patches=()):
    """The objects of the overlay with these components and further patches, by
    (kind, name), from a copy in the folder that names them as its comment
    says."""
    copy = pathlib.Path(folder) / "kubernetes"
    if not copy.exists():
        subprocess.run(["cp", "-R", FOLDER, copy], check=True)
    path = copy / "overlays" / overlay / "kustomization.yml"
    settings = yaml.safe_load(
        (FOLDER / "overlays" / overlay / "kustomization.yml").read_text())
    settings["components"] = [f"../../components/{c}" for c in components]
    settings["patches"] += patches
    path.write_text(yaml.safe_dump(settings))
    done = subprocess.run([KUBECTL, "kustomize", path.parent], text=True,
                          capture_output=True, check=False, timeout=60)
    if done.returncode or done.stderr:
        raise ValueError(f"{overlay} with {components}: {done.stderr}")
    return by_name(done.stdout)


def by_name(text):
    found = {}
    for one in yaml.safe_load_all(text):
        key = one["kind"], one["metadata"]["name"]
        if key in found:
            raise ValueError(f"{key} is there twice")
        found[key] = one
    return found


def findings(one):
    """What the schemas say against an object; none: []."""
    kind = one["kind"]
    model = MODELS.get((one["apiVersion"], kind))
    if model:
        try:
            kept = model.model_validate(one).model_dump(
                by_alias=True, exclude_unset=True, mode="json")
        except pydantic.ValidationError as error:
            return [f"{kind}: {error}"]
        return lost_fields(one, kept, kind)
    found = []
    for version in VERSIONS:
        try:
            used = kubernetes_validate.validate(one, version, strict=True)
            if used != version:
                found.append(f"{kind}: no schema of {version}, only {used}")
        except kubernetes_validate.ValidationError as error:
            path = ".".join(map(str, error.absolute_path))
            found.append(f"{kind}.{path}: {error.message} ({version})")
        except kubernetes_validate.SchemaNotFoundError as error:
            found.append(f"{kind}: {error.message}")
    return found
