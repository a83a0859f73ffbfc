# SPDX-License-Identifier: Apache-2.0
"""What a decision was made from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One input to a decision, in words a person can check: `nfs:/data read latency`, 0.095, `seconds`."""

    input: str
    value: float
    unit: str
    score: float | None = None
    usual: float | None = None
