"""Every file that says the version says CMake's."""

import fnmatch
import re

CMAKE = "CMakeLists.txt"
PROJECT = re.compile(r"project\(\w+ VERSION ([\d.]+)")
# Files, and where they say it.
PLACES = (
    ("Dockerfile", r"ARG VERSION=(\S+)"),
    ("client/python/pyproject.toml", r'version = "(.*)"'),
    ("client/python/encoderd/__init__.py", r'__version__ = "(.*)"'),
    ("deploy/kubernetes/overlays/*/kustomization.yml", r" +newTag: (\S+)"),
)


def check(tree):
    project = PROJECT.search(tree.read(CMAKE) if CMAKE in tree.files else "")
    if not project:
        return [f"{CMAKE}: project() says no version"]
    found = []
    for pattern, line in PLACES:
        for path in fnmatch.filter(tree.files, pattern):
            said = re.findall(f"(?m)^{line}$", tree.read(path))
            if said != [project[1]]:
                found.append(f"{path}: says version {', '.join(said) or 'none'},"
                             f" but {CMAKE} {project[1]}")
    return found
