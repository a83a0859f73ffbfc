# SPDX-License-Identifier: Apache-2.0
"""The server process, under the names every exporter uses."""

from collections.abc import Iterator

from gpufeed.catalogue import process
from gpufeed.exposition.family import Family
from gpufeed.exposition.server_facts import ServerFacts


def families(server: ServerFacts) -> Iterator[Family]:
    """What the kernel accounts for it, once it was read."""
    facts = server.process
    if facts is not None:
        yield Family(process.PROCESS_CPU_SECONDS_TOTAL, [((), facts.cpu_s)])
        yield Family(process.PROCESS_RESIDENT_MEMORY_BYTES, [((), facts.resident_bytes)])
        yield Family(process.PROCESS_VIRTUAL_MEMORY_BYTES, [((), facts.virtual_bytes)])
        yield Family(process.PROCESS_START_TIME_SECONDS, [((), facts.start_wall_s)])
        yield Family(process.PROCESS_OPEN_FDS, [((), facts.open_fds)])
        yield Family(process.PROCESS_MAX_FDS, [((), facts.max_fds)])
