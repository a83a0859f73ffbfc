# SPDX-License-Identifier: Apache-2.0
"""What all files of a node say."""

import re

from captured.second_fabric import infiniband, interfaces
from captured.second_reader import Node, Page
from captured.second_storage import ceph, disks, gds, lustre, nfs


def pressure(node: Node) -> Page:
    page = Page()
    for resource in ("cpu", "io", "memory", "irq"):
        text = node.raw(f"proc/pressure/{resource}")
        totals = dict(re.findall(r"^(some|full) .*total=(\d+)", text, re.MULTILINE))
        some, full = totals.get("some"), totals.get("full")
        page.add("pressure_waiting_seconds_total", int(some) / 1e6 if some else None, resource=resource)
        stalled = int(full) / 1e6 if full and resource != "cpu" else None
        page.add("pressure_stalled_seconds_total", stalled, resource=resource)
        known = 1 if totals else None if resource == "irq" else 0
        page.add("pressure_available", known, resource=resource)
    return page


def everything(node: Node) -> Page:
    """All topics of a node."""
    page = Page()
    for topic in (infiniband, interfaces, disks, nfs, lustre, ceph, gds, pressure):
        found = topic(node)
        page.series |= found.series
        page.metrics |= found.metrics
    return page
