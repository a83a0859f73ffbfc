# SPDX-License-Identifier: Apache-2.0
"""The trees face: sysfs and procfs of a node that does not exist, below a directory that does."""

from pathlib import Path

from gpufeed.simulate.layout import DEFAULT, Layout
from gpufeed.simulate.trees.data_set import write_client, write_client_statistics
from gpufeed.simulate.trees.fabric_drivers import DRIVERS
from gpufeed.simulate.trees.infiniband import device_path, write_counters, write_devices
from gpufeed.simulate.trees.kernel import write_identity, write_kernel, write_pressure
from gpufeed.simulate.trees.kernel_log import KernelLog
from gpufeed.simulate.trees.lustre import write_clients, write_clients_statistics
from gpufeed.simulate.trees.network import write_interfaces, write_statistics
from gpufeed.simulate.trees.nfs import Server, write_mounts, write_mountstats
from gpufeed.simulate.trees.pci import write_pci
from gpufeed.simulate.trees.storage import write_disks, write_diskstats
from gpufeed.simulate.trees.tasks import TaskTree
from gpufeed.simulate.trees.trouble import Trouble
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import NodeTruth

__all__ = ["Trees"]

SERVER_DIES_S = 20.0
SERVER_BACK_S = 40.0


class Trees:
    """Keeps the files below `root` as the truth says. What does not change is written once, here."""

    def __init__(self, root: Path, truth: NodeTruth, layout: Layout = DEFAULT) -> None:
        self._truth = truth
        self._tree = TreeWriter(root)
        self._driver = DRIVERS[layout.fabric]
        self._has_pressure = layout.has_pressure
        boards = [gpu.board for gpu in truth.gpus]
        self._tasks = TaskTree(self._tree, boards, layout)
        self._log = KernelLog(self._tree)
        write_identity(self._tree, truth)
        write_pci(self._tree, boards, self._driver.module)
        write_devices(self._tree, boards, self._driver)
        write_interfaces(self._tree, boards, self._driver)
        write_disks(self._tree)
        write_mounts(self._tree, layout.data_set)
        write_client(self._tree, layout.data_set)
        self._data_set = layout.data_set
        self._has_lustre = layout.data_set == "lustre"
        is_mortal = layout.trouble in {"nfs_dead", "nfs_rebooted"}
        self._server = Server(
            dies_at_s=SERVER_DIES_S if is_mortal else None,
            back_at_s=SERVER_BACK_S if layout.trouble == "nfs_rebooted" else None,
        )
        self._trouble = Trouble(self._tree, layout.trouble, device_path(boards[-1], self._driver))
        if self._has_lustre:
            write_clients(self._tree)

    def pin(self, path: str, text: str | None) -> None:
        """Let a file hold `text` whatever the truth says; None: reading it fails."""
        self._tree.pin(path, text)

    def unpin(self, path: str) -> None:
        """Let what was there before stand there again."""
        self._tree.unpin(path)

    def hide(self, path: str) -> None:
        """Let a device or process be gone, as one that was pulled out."""
        self._tree.hide(path)

    def show(self, path: str) -> None:
        """Let it be there again."""
        self._tree.show(path)

    def write(self, boot_ns: int, wall_ns: int) -> None:
        """Everything that counts, as of now: since boot, and since 1970."""
        self._log.write(self._truth.gpus, boot_ns)
        write_kernel(self._tree, self._truth, wall_ns)
        if self._has_pressure:
            write_pressure(self._tree, self._truth.host)
        write_counters(self._tree, self._truth.gpus, self._driver)
        write_statistics(self._tree, self._truth.gpus, self._driver)
        write_diskstats(self._tree, self._truth.gpus)
        if self._has_lustre:
            write_clients_statistics(self._tree, self._truth.gpus, wall_ns)
        write_client_statistics(self._tree, self._data_set, self._truth.gpus)
        of_nfs = self._truth.gpus if self._data_set == "nfs" else ()
        write_mountstats(self._tree, of_nfs, self._truth.host.elapsed_s, self._server)
        self._tasks.write(self._truth)
        self._trouble.write(self._truth.host.elapsed_s)
