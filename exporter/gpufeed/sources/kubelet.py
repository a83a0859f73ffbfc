# SPDX-License-Identifier: Apache-2.0
"""What the kubelet leaves on a node's disk: names of pods in the names of log folders, and a table of given devices."""

from typing import Final

from gpufeed.errors import Absent, ParseError, SourceError
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GpuUuid
from gpufeed.model.jobs import Allocation, Allocations, PodName
from gpufeed.parse.pods import GivenDevices, container_of_log, parse_checkpoint, pod_of_folder
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, state_of

POD_LOGS: Final = "var/log/pods"
CONTAINER_LOGS: Final = "var/log/containers"
CHECKPOINT: Final = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
_READ_AS_ROOT: Final = "AmbientCapabilities=CAP_DAC_READ_SEARCH for the probe, or run it as root"


class Kubelet:
    """Looks below the root of the node's own file system."""

    def __init__(self, root: Tree) -> None:
        self._root = root

    def read(self, held_by: frozenset[str], gathering: Gathering) -> None:
        """Allocations, and a PodName of each pod that has GPUs or whose processes hold them."""
        given = self._given(gathering)
        if given is not None and given.has_gpus:
            jobs = tuple(
                Allocation(job_id=uid, uuids=tuple(map(GpuUuid, uuids))) for uid, uuids in sorted(given.pods.items())
            )
            gathering.samples.append(Allocations(scheduler="kubernetes", jobs=jobs, is_complete=True))
        gathering.samples.extend(self._names(held_by.union(given.pods if given is not None else ()), gathering))

    def _given(self, gathering: Gathering) -> GivenDevices | None:
        try:
            given = parse_checkpoint(self._root.table(CHECKPOINT))
        except Absent:
            return None  # most nodes have no kubelet: not worth a word
        except (SourceError, ParseError) as error:
            state = state_of(error)
            fix = _READ_AS_ROOT if state == "denied" else ""
            gathering.say(InputStatus("allocations", "kubernetes", state, str(error), fix))
            if state != "denied":
                gathering.fail(CHECKPOINT, error)
            return None
        gathering.say(InputStatus("allocations", "kubernetes", "available"))
        return given

    def _names(self, wanted: frozenset[str], gathering: Gathering) -> list[PodName]:
        if not wanted:
            return []
        folders = [folder for name in self._list(POD_LOGS, gathering) if (folder := pod_of_folder(name)) is not None]
        logs = [log for name in self._list(CONTAINER_LOGS, gathering) if (log := container_of_log(name)) is not None]
        return [
            PodName(
                uid=folder.uid,
                namespace=folder.namespace,
                pod=folder.pod,
                containers={
                    log.container_id: log.container
                    for log in logs
                    if (log.namespace, log.pod) == (folder.namespace, folder.pod)
                },
            )
            for folder in folders
            if folder.uid in wanted
        ]

    def _list(self, path: str, gathering: Gathering) -> tuple[str, ...]:
        try:
            return self._root.names(path)
        except SourceError as error:
            gathering.say(InputStatus("pod_names", path, state_of(error), str(error)))
            return ()
