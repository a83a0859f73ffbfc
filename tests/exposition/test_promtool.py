# SPDX-License-Identifier: Apache-2.0
"""Prometheus' own linter has nothing to say about a page of everything."""

import shutil
import subprocess

import pytest

from exposition import nodes
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ProcessFacts, ServerFacts
from gpufeed.model.sample import Extension


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")
def test_promtool_check_metrics_prints_nothing() -> None:
    state = nodes.with_samples(
        nodes.node(), Extension(source="pdu", metric="outlet_watts", labels=(("outlet", "7"),), value=1.0)
    )
    server = ServerFacts(
        config_hash="abc",
        rules_hash="def",
        reload_success_wall_s=1.7e9,
        alerts={("GpuLost", "page", "firing"): 1},
        process=ProcessFacts(
            cpu_s=1.0, resident_bytes=1, virtual_bytes=2, start_wall_s=1.7e9, open_fds=4, max_fds=1024
        ),
    )
    page = Encoder(profile="full", max_series=2000).encode(families(state, server)).page(Format.TEXT)
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
