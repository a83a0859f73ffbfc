# SPDX-License-Identifier: Apache-2.0
"""Certificates as files."""

from pathlib import Path
from typing import Final

import trustme

TLS: Final = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"
"""A web configuration with the files that `write` makes."""


def write(certificate: trustme.LeafCert, folder: Path, name: str = "server") -> None:
    """Certificate and key as NAME.pem and NAME.key."""
    (folder / f"{name}.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    (folder / f"{name}.key").write_bytes(certificate.private_key_pem.bytes())
