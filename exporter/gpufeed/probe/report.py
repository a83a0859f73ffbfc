# SPDX-License-Identifier: Apache-2.0
"""Makes frames: what the slots hold, how every lane stands, what the probe itself has used."""

from collections.abc import Callable, Iterable

from gpufeed.clock import Clock, read_frame_time
from gpufeed.model.frame import Frame, LaneStatus, ProbeCost
from gpufeed.probe.clean import clean
from gpufeed.probe.lane import Lane
from gpufeed.probe.slots import Slots

Used = Callable[[], tuple[int, int]]
"""Processor time in nanoseconds and resident bytes of this process."""


class Reporter:
    """Numbers the frames of one probe."""

    def __init__(self, clock: Clock, slots: Slots, pid: int, used: Used) -> None:
        self._clock = clock
        self._slots = slots
        self._pid = pid
        self._used = used
        self._sequence = 0

    def frame(self, lanes: Iterable[Lane]) -> Frame:
        """The next frame. What it holds is gone from the slots.

        The time is read last: nothing in a frame is younger than the frame. A lane that was withdrawn and began anew
        stands in `withdrawn` and in `readings`: the former comes first.
        """
        self._sequence += 1
        batch = self._slots.take(self._clock.monotonic_ns())
        lanes = tuple(lanes)
        statuses: tuple[LaneStatus, ...] = tuple(lane.status() for lane in lanes)
        frame = Frame(
            sequence=self._sequence,
            time=read_frame_time(self._clock),
            lanes=statuses,
            readings=batch.readings,
            failures=batch.failures,
            inputs=batch.inputs,
            events=batch.events,
            withdrawn=batch.withdrawn,
            cost=self._cost(lanes),
            probe_pid=self._pid,
        )
        return clean(frame)

    def _cost(self, lanes: tuple[Lane, ...]) -> ProbeCost:
        cpu_ns, resident_bytes = self._used()
        counts = [lane.desk.counts for lane in lanes]
        return ProbeCost(
            cpu_ns=cpu_ns,
            resident_bytes=resident_bytes,
            nvml_calls=sum(count.nvml_calls for count in counts),
            field_values=sum(count.field_values for count in counts),
            file_reads=sum(count.file_reads for count in counts),
        )
