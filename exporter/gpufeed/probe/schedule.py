# SPDX-License-Identifier: Apache-2.0
"""When a lane's groups are due: by a phase of their own, without bursts to catch up."""

from collections.abc import Mapping
from typing import Final

from gpufeed.model.ids import GroupName
from gpufeed.sources.contract import Group

GPM_SPACING_NS: Final = 110_000_000
"""Two GPM samples of one GPU are to lie at least 100 ms apart (nvmlGpmMetricsGet); the rest is for jitter."""

_LATE_SHARE: Final = 4
_PAUSE_SHARE: Final = 8


def is_fast(name: GroupName) -> bool:
    """Whether the cost governor may lengthen the period of this group."""
    return name.endswith(".fast")


class Schedule:
    """Due times of groups, in monotonic nanoseconds. All are due at `now_ns`, in the order given."""

    def __init__(self, groups: tuple[Group, ...], now_ns: int) -> None:
        self._groups: Mapping[GroupName, Group] = {group.name: group for group in groups}
        self._due_ns = dict.fromkeys(self._groups, now_ns)
        self.fast_period_ns = 0
        """The governor's word: no fast group is read more often."""

    def period_ns(self, name: GroupName) -> int:
        """The period in force of a group."""
        group = self._groups[name]
        return max(group.period_ns, self.fast_period_ns) if is_fast(name) else group.period_ns

    def next(self) -> tuple[int, GroupName] | None:
        """The earliest due time and its group; equal ones in the order of the plan. None without groups."""
        name = min(self._due_ns, key=self._due_ns.__getitem__, default=None)
        return None if name is None else (self._due_ns[name], name)

    def done(self, name: GroupName, began_ns: int, ended_ns: int) -> None:
        """A read is over: set the next due time.

        A read that began in time keeps the phase. A late one starts a new phase, so that two reads never lie much
        closer than a period. One that took longer than its period is followed by a pause: a lane is never all busy.
        """
        period_ns = self.period_ns(name)
        due_ns = self._due_ns[name]
        is_late = began_ns - due_ns > period_ns // _LATE_SHARE
        following_ns = (began_ns if is_late else due_ns) + period_ns
        self._due_ns[name] = max(following_ns, ended_ns + period_ns // _PAUSE_SHARE)
