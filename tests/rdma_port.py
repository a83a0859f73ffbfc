# SPDX-License-Identifier: Apache-2.0
"""An RDMA device in a tree of files."""

from pathlib import Path


def write_port(device: Path) -> None:
    """The least that makes an RDMA device with one active 100 Gb/s port."""
    port = device / "ports" / "1"
    (port / "counters").mkdir(parents=True)
    (port / "hw_counters").mkdir()
    for name, text in {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "100 Gb/sec (4X EDR)",
        "link_layer": "InfiniBand",
        "lid": "0x5",
        "counters/port_rcv_data": "1000",
        "counters/port_xmit_data": "2000",
        "counters/symbol_error": "0",
    }.items():
        (port / name).write_text(text + "\n", encoding="ascii")
    (device / "fw_ver").write_text("20.35.1012\n", encoding="ascii")
