# SPDX-License-Identifier: Apache-2.0
"""What the files of disks and of network file systems say."""

import re
from collections import defaultdict
from pathlib import Path

from captured.second_reader import Node, Page


def disks(node: Node) -> Page:
    page = Page()
    rows = [line.split() for line in node.raw("proc/diskstats").splitlines()]
    rows = [row for row in rows if len(row) >= 14 and all(word.isdigit() for word in (*row[:2], *row[3:14]))]
    named = {row[2]: list(map(int, row[3:14])) for row in rows}
    whole = node.names("sys/block")
    counted: dict[str, list[list[int]]] = defaultdict(list)
    for name, numbers in named.items():
        sysfs = name.replace("/", "!")
        is_part = any(
            re.fullmatch(rf"{re.escape(other)}{'p' if other[-1].isdigit() else ''}\d+", name) for other in named
        )
        is_over_others = re.match(r"(?:loop|ram|zram|sr|fd|dm-|md|drbd|bcache)\d", name) or node.names(
            f"sys/block/{sysfs}/slaves"
        )
        is_slot = name.startswith("nbd") and numbers[0] == numbers[4] == 0
        is_empty = node.number(f"sys/block/{sysfs}/size") == 0
        if is_over_others or is_slot or is_empty or (is_part and sysfs not in whole):
            continue
        head = re.fullmatch(r"(nvme\d+)c\d+(n\d+)", name)
        counted[head[1] + head[2] if head else name].append(numbers)
    for name, lines in counted.items():
        paths = [numbers for numbers in lines if numbers is not named.get(name)]
        head_line = named.get(name, [0] * 11)
        numbers = [max(own, sum(path[at] for path in paths)) for at, own in enumerate(head_line)]
        labels = {"kind": "block", "target": name}
        page.add("storage_reads_total", numbers[0], **labels)
        page.add("storage_read_bytes_total", numbers[2] * 512, **labels)
        page.add("storage_read_seconds_total", numbers[3] / 1000, **labels)
        page.add("storage_writes_total", numbers[4], **labels)
        page.add("storage_write_bytes_total", numbers[6] * 512, **labels)
        page.add("storage_write_seconds_total", numbers[7] / 1000, **labels)
        page.add("storage_inflight", numbers[8], **labels)
        page.add("storage_busy_seconds_total", numbers[9] / 1000, **labels)
        page.add("storage_queue_seconds_total", numbers[10] / 1000, **labels)
    return page


def _unescaped(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), text)


def nfs(node: Node) -> Page:
    page = Page()
    table = "proc/1" if node.raw("proc/1/mountstats") else "proc/self"
    devices, automounts = {}, set()
    for line in node.raw(f"{table}/mountinfo").splitlines():
        words = line.split(" ")
        if " - " in line and len(words) > 6:
            devices[_unescaped(words[4])] = words[2]
            if words[words.index("-") + 1] == "autofs":
                automounts.add(_unescaped(words[4]))
    mounts: dict[str, tuple[str, str]] = {}
    for block in re.split(r"^\s*(?=(?:no )?device )", node.raw(f"{table}/mountstats"), flags=re.MULTILINE):
        header = re.match(r"device (\S+) mounted on (\S+) with fstype nfs4?(?: |$)", block)
        if header:
            mounts[_unescaped(header[2])] = (_unescaped(header[1]), block)
    superblocks: dict[object, list[str]] = defaultdict(list)
    for point, (source, block) in mounts.items():
        superblocks[devices.get(point, (source, re.sub(r"xprt:.*", "", block.partition("\n")[2])))].append(point)
    targets: dict[str, list[str]] = defaultdict(list)
    for points in superblocks.values():
        point = min(points, key=lambda one: (len(one), one))
        is_somebodys = re.search(
            "/kubelet/|/containers?/|/docker/|/containerd/|/k3s/|/crio/|/overlay|^/proc/|^/run/user/", point
        ) or (re.search("/(?:home|homes|users)/[^/]+$", point) and str(Path(point).parent) in automounts)
        targets[mounts[point][0] if is_somebodys else point].append(mounts[point][1])
    for target, blocks in targets.items():
        _nfs_target(page, {"kind": "nfs", "target": target}, blocks)
    return page


def _nfs_target(page: Page, labels: dict[str, str], blocks: list[str]) -> None:
    moved = [list(map(int, found[1].split())) for block in blocks if (found := re.search(r"bytes:\s+([\d ]+)", block))]
    if moved:
        page.add("storage_read_bytes_total", sum(one[4] for one in moved), **labels)
        page.add("storage_write_bytes_total", sum(one[5] for one in moved), **labels)
        page.add("storage_application_read_bytes_total", sum(one[0] + one[2] for one in moved), **labels)
    if not any("per-op statistics" in block for block in blocks):
        return
    lines = re.findall(r"^\s*([A-Z_]+): ((?:\d+ ?){8,})\s*$", "\n".join(blocks), re.MULTILINE)
    calls = [(name, list(map(int, numbers.split()))) for name, numbers in lines]

    def over(names: tuple[str, ...], column: int) -> int:
        return sum(numbers[column] for name, numbers in calls if name in names)

    reads, writes = ("READ", "READ_PLUS"), ("WRITE",)
    page.add("storage_reads_total", over(reads, 0), **labels)
    page.add("storage_writes_total", over(writes, 0), **labels)
    page.add("storage_read_seconds_total", over(reads, 7) / 1000, **labels)
    page.add("storage_write_seconds_total", over(writes, 7) / 1000, **labels)
    page.add("storage_queue_seconds_total", over(reads + writes, 5) / 1000, **labels)
    page.add("storage_retransmits_total", sum(max(0, numbers[1] - numbers[0]) for _, numbers in calls), **labels)
    page.add("storage_timeouts_total", sum(numbers[2] for _, numbers in calls), **labels)
    failed = [n[8] for name, n in calls if len(n) > 8 and any(n) and name in {*reads, *writes, "COMMIT"}]
    page.add("storage_errors_total", sum(failed) if failed else None, **labels)
    for name in {name for name, numbers in calls if any(numbers)}:
        page.add("storage_operations_total", over((name,), 0), **labels, operation=name)
        page.add("storage_operation_seconds_total", over((name,), 7) / 1000, **labels, operation=name)


def lustre(node: Node) -> Page:
    page = Page()
    found: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for root in ("sys/kernel/debug/lustre", "proc/fs/lustre"):
        for name in node.names(f"{root}/llite"):
            text = node.raw(f"{root}/llite/{name}/stats")
            if text:
                system, _, instance = name.rpartition("-")
                servers = [
                    node.raw(f"{root}/osc/{one}/stats")
                    for one in node.names(f"{root}/osc")
                    if one.startswith(f"{system}-") and one.endswith(f"-osc-{instance}")
                ]
                found[system].append((text, [one for one in servers if one]))
    for system, clients in found.items():
        labels = {"kind": "lustre", "target": system}
        for way in ("read", "write"):
            moved = [
                sum(_samples(one, f"{way}_bytes")[1] for one in servers)
                if servers
                else _samples(text, f"osc_{way}" if "osc_" in text else f"{way}_bytes")[1]
                for text, servers in clients
            ]
            page.add(f"storage_{way}_bytes_total", sum(moved), **labels)
            names = [way if re.search(rf"^{way} ", text, re.MULTILINE) else f"{way}_bytes" for text, _ in clients]
            calls = [_samples(text, name)[0] for (text, _), name in zip(clients, names, strict=True)]
            page.add(f"storage_{way}s_total", sum(calls), **labels)
            timed = [text for text, _ in clients if "[usec" in text]
            if len(timed) == len(clients):
                took = [_samples(text, way)[1] for text in timed]
                never = all(_samples(text, f"{way}_bytes")[0] == 0 for text in timed)
                page.add(f"storage_{way}_seconds_total", sum(took) / 1e6 if any(took) or never else None, **labels)
        page.add(
            "storage_application_read_bytes_total",
            sum(_samples(text, "read_bytes")[1] for text, _ in clients),
            **labels,
        )
        _lustre_operations(page, labels, [text for text, _ in clients])
    return page


def _lustre_operations(page: Page, labels: dict[str, str], texts: list[str]) -> None:
    counted: dict[str, int] = defaultdict(int)
    took: dict[str, float] = defaultdict(float)
    for text in texts:
        of_bytes = {}
        for name, samples, unit, _, total in re.findall(
            r"^(\w+) +(\d+) samples \[(\w+)\](?: (\d+) \d+ (\d+))?", text, re.MULTILINE
        ):
            if name in {"opencount", "openclosetime", "dirty_pages_hits", "dirty_pages_misses"}:
                continue
            if unit in {"regs", "reqs", "usec", "usecs"}:
                counted[name] += int(samples)
                if unit.startswith("usec"):
                    took[name] += int(total) / 1e6
            if name in {"read_bytes", "write_bytes"}:
                of_bytes[name.removesuffix("_bytes")] = int(samples)
        untimed = (name for name in of_bytes if not re.search(rf"^{name} ", text, re.MULTILINE))
        for name in untimed:
            counted[name] += of_bytes[name]
    for name, calls in counted.items():
        page.add("storage_operations_total", calls, **labels, operation=name)
    for name, seconds in took.items():
        page.add("storage_operation_seconds_total", seconds, **labels, operation=name)


def _samples(text: str, name: str) -> tuple[int, int]:
    found = re.search(rf"^{name} +(\d+) samples \[\w+\](?: +\d+ +\d+ +(\d+))?", text, re.MULTILINE)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def ceph(node: Node) -> Page:
    """Of clients that are not told to serve a mount: called by their own names."""
    page = Page()
    for client in node.names("sys/kernel/debug/ceph"):
        folder = f"sys/kernel/debug/ceph/{client}/metrics"
        text = node.raw(folder) or "\n\n".join(node.raw(f"{folder}/{table}") for table in ("latency", "size"))
        labels = {"kind": "ceph", "target": client}
        seen: set[str] = set()
        for table in re.split(r"\n\s*\n", text):
            header, *rows = table.strip().splitlines() or [""]
            columns = header.split()[1:]
            if "total" not in columns or len(columns) < 2:
                continue
            for row in rows[1:]:
                name, *numbers = row.split()
                values = dict(zip(columns, map(int, numbers), strict=False))
                metric = {"read": "storage_reads_total", "write": "storage_writes_total"}.get(name)
                if name not in seen:
                    page.add("storage_operations_total", values["total"], **labels, operation=name)
                    if metric:
                        page.add(metric, values["total"], **labels)
                seen.add(name)
                if metric and "total_sz(bytes)" in values:
                    page.add(f"storage_{name}_bytes_total", values["total_sz(bytes)"], **labels)
                if "sum_lat(us)" in values:
                    seconds = values["sum_lat(us)"] / 1e6
                    page.add("storage_operation_seconds_total", seconds, **labels, operation=name)
                    if metric:
                        page.add(f"storage_{name}_seconds_total", seconds, **labels)
    return page


def gds(node: Node) -> Page:
    page = Page()
    text = node.raw("proc/driver/nvidia-fs/stats")
    labels = {"kind": "gds", "target": "node"}

    def value(line: str, key: str) -> int | None:
        found = re.search(rf"^{line}\s*:.*\b{key}=(\d+)", text, re.MULTILINE | re.IGNORECASE)
        return int(found[1]) if found else None

    if not text:
        return page
    is_off = re.search("^IO stats: Disabled", text, re.MULTILINE) is not None
    is_counting = value("Reads", "n") is not None and not is_off
    for way in ("read", "write"):
        mebibytes = value(f"{way}s", f"{way}MiB")
        moved = mebibytes * 2**20 if is_counting and mebibytes is not None else None
        page.add(f"storage_{way}_bytes_total", moved, **labels)
        page.add(f"storage_{way}s_total", value(f"{way}s", "ok") if is_counting else None, **labels)
    page.add("storage_errors_total", (value("Reads", "err") or 0) + (value("Writes", "err") or 0), **labels)
    page.add("storage_inflight", (value("Ops", "Read") or 0) + (value("Ops", "Write") or 0), **labels)
    return page
