# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as data: which call of which GPU, how, and from which call on. Kept in the truth block as JSON."""

from collections.abc import Sequence
from typing import Literal

import msgspec

Effect = Literal["missing", "not_supported", "error", "lost", "hang", "answers", "adds"]
"""missing: the library has no such symbol. hang: the call does not return while the fault stands.

Of a single field or metric also: answers, `value` in place of the true one; adds, the true value is added to what
stands in the caller's memory instead of replacing it.
"""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault. It stands until taken out of the table."""

    effect: Effect
    function: str = "*"  # C name of the NVML function; *: every function that takes a device
    gpu: int | None = None  # None: on every GPU
    field: int | None = None  # of nvmlDeviceGetFieldValues (nvmlGpmMetricsGet): this field (metric) alone, not the call
    code: int = 999  # of effect error: the nvmlReturn_t
    after_calls: int = 0  # so many calls (of this process, matching this fault) still go well
    value: float = 0.0  # of effect answers, in the driver's own unit

    def concerns(self, function: str, gpu: int | None, field: int | None = None) -> bool:
        """Does it stand in the way of this call (gpu None: of one that takes no device), or of this field of it."""
        if self.field != field or (self.gpu is not None and self.gpu != gpu):
            return False
        return self.function == function or (self.function == "*" and gpu is not None)


def encode(faults: Sequence[Fault]) -> bytes:
    """For the block."""
    return msgspec.json.encode(list(faults))


def decode(data: bytes) -> tuple[Fault, ...]:
    """From the block; nothing gives none."""
    return tuple(msgspec.json.decode(data, type=list[Fault])) if data else ()
