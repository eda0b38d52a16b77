"""The list of what an image holds, as SPDX 2.3 in JSON: ISO/IEC 5962."""

import datetime
import hashlib
import json
import os
import platform
import re
import urllib.parse


def write(path, version, revision, linked, built_in, contained=()):
    """encoderd and the packages that it loads (linked), that are compiled into it
    (built_in), or whose files lie next to it (contained)."""
    encoderd = {**_package("encoderd", version), "licenseDeclared": "Apache-2.0",
                "sourceInfo": f"revision {revision}"}
    described = [encoderd]
    relationships = [_relationship("SPDXRef-DOCUMENT", "DESCRIBES", encoderd)]
    for packages, how in ((linked, "DYNAMIC_LINK"), (built_in, "STATIC_LINK"),
                          (contained, "DEPENDS_ON")):
        for package in packages:
            found = _describe(package)
            if found not in described:
                described.append(found)
            relationships.append(
                _relationship(encoderd["SPDXID"], how, found))
    seal = hashlib.sha256(json.dumps(described).encode()).hexdigest()
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"encoderd-{version}",
        "documentNamespace": f"urn:sha256:{seal}",
        "creationInfo": {"created": _now(),
                         "creators": ["Tool: encoderd-deploy-image-sbom"]},
        "packages": described,
        "relationships": relationships,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _package(name, version):
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def _describe(package):
    found = {
        **_package(package.name, package.version),
        "licenseComments": f"/usr/share/doc/{package.name} in the image",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER",
                          "referenceType": "purl",
                          "referenceLocator": _purl(package)}],
    }
    if package.source:
        found["sourceInfo"] = f"built from source package {package.source}"
    return found


def _purl(package):
    def quote(text):
        return urllib.parse.quote(text, safe=".-_~:")

    if package.kind == "pypi":
        return f"pkg:pypi/{quote(package.name)}@{quote(package.version)}"
    system = platform.freedesktop_os_release()
    # Debian's testing and sid have no number.
    release = system.get("VERSION_ID") or system.get("VERSION_CODENAME", "")
    return (f"pkg:deb/{system['ID']}/{quote(package.name)}@"
            f"{quote(package.version)}?arch={package.architecture}"
            f"&distro={system['ID']}-{release}")


def _relationship(one, how, other):
    return {"spdxElementId": one, "relationshipType": how,
            "relatedSpdxElement": other["SPDXID"]}


def _now():
    """SOURCE_DATE_EPOCH where it is set, so that a build can be repeated."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    at = (datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
          if seconds else datetime.datetime.now(datetime.timezone.utc))
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
