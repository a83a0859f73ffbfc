# SPDX-License-Identifier: Apache-2.0
"""Processor time of the node as counters that do not fall.

The kernel's idle and iowait of a processor may go back a little, as it says itself (proc.rst §1.7): every such step
would look like a counter that began anew, and a rate over it like all the time since boot.
"""

from collections.abc import Mapping
from typing import Final

from gpufeed.model.host import HostCpu
from gpufeed.signals.samples import Samples, all_of

_MAY_FALL: Final = frozenset({"idle", "iowait"})
_STEP_BACK_S: Final = 3.0
"""By processor. More than that is no step back but another beginning."""


def fold(previous: Mapping[str, float], samples: Samples) -> Mapping[str, float]:
    """Seconds by mode after the newest reading; as they were where there is none."""
    for cpu in all_of(samples, HostCpu):
        allowed_s = _STEP_BACK_S * max(1, cpu.cpus)
        falls = {mode: previous.get(mode, 0.0) - now_s for mode, now_s in cpu.seconds.items()}
        is_same_life = all(fall_s <= (allowed_s if mode in _MAY_FALL else 0.0) for mode, fall_s in falls.items())
        if is_same_life:
            return {mode: now_s + max(0.0, falls[mode]) for mode, now_s in cpu.seconds.items()}
        return cpu.seconds
    return previous
