# SPDX-License-Identifier: Apache-2.0
"""What is in a package, as a CycloneDX 1.5 document: from the metadata of the tree itself."""

import email
import hashlib
import json
from pathlib import Path
from typing import Any


def sbom(tree: Path, wheels: tuple[Path, ...], version: str) -> str:
    """The document; the same tree gives the same bytes."""
    hashes = _hashes(wheels)
    components = [_component(metadata, hashes) for metadata in sorted(tree.glob("*.dist-info/METADATA"))]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "gpufeed", "version": version}},
        "components": [one for one in components if one["name"] != "gpufeed"],
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _component(metadata: Path, hashes: dict[str, list[str]]) -> dict[str, Any]:
    message = email.message_from_bytes(metadata.read_bytes())
    name, version = str(message["Name"]), str(message["Version"])
    licence = message["License-Expression"] or message["License"] or "see its files"
    found = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
        "licenses": [{"license": {"name": str(licence).strip().splitlines()[0][:120]}}],
    }
    digests = hashes.get(name.lower().replace("-", "_"), [])
    if digests:
        found["properties"] = [{"name": "gpufeed:wheel-sha256", "value": digest} for digest in digests]
    return found


def _hashes(wheels: tuple[Path, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for wheel in wheels:
        name = wheel.name.split("-")[0].lower()
        found.setdefault(name, []).append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    return {name: sorted(set(digests)) for name, digests in found.items()}
