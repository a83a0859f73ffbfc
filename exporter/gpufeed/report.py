# SPDX-License-Identifier: Apache-2.0
"""For training loops: tell the node's gpufeed what only the job knows. Imports nothing but the standard library.

    from gpufeed.report import Report
    report = Report(flops_per_step=6 * parameters * tokens_per_step)
    for batch in report.batches(loader):
        train(batch)

`batches` measures how long the loop waits for each batch. Nothing here ever raises into the loop or waits for anybody:
where nobody listens, nothing is told. One file, so that it can be copied into a job's image as it is.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

VERSION: Final = 1
_ENVIRONMENT: Final = "GPUFEED_REPORT"
_DEFAULT: Final = "/run/gpufeed-reports/report.sock"
_EVERY_S: Final = 2.0


class Report(Generic[T]):
    """What one process of a job reports of itself, since it began.

    `to`: the socket of gpufeed, or a directory for text files; default: $GPUFEED_REPORT, else the usual socket.
    `dtype`: of the arithmetic that model FLOPs are counted in: bf16, fp8, tf32.
    """

    def __init__(
        self,
        to: str | None = None,
        *,
        flops_per_step: float | None = None,
        dtype: str = "bf16",
        every_s: float = _EVERY_S,
    ) -> None:
        self._to = to or os.environ.get(_ENVIRONMENT) or _DEFAULT
        self._flops_per_step = flops_per_step
        self._dtype = dtype
        self._every_s = every_s
        self._began = time.monotonic()
        self._told = self._began - every_s
        self.steps = 0
        self.data_wait_s = 0.0
        self.model_flops = 0.0
        self.samples = 0.0
        self.tokens = 0.0

    def batches(self, loader: Iterable[T]) -> Iterator[T]:
        """The batches of `loader`, each with the time that it was waited for; a step is what is done with one."""
        source = iter(loader)
        while True:
            asked = time.monotonic()
            try:
                batch = next(source)
            except StopIteration:
                self.tell()
                return
            finally:
                self.data_wait_s += time.monotonic() - asked
            yield batch
            self.step()

    def step(self, *, flops: float | None = None, samples: float = 0, tokens: float = 0) -> None:
        """A step is done. `flops`: of the model in it, where they differ from step to step."""
        self.steps += 1
        self.add(flops=self._flops_per_step if flops is None else flops, samples=samples, tokens=tokens)

    def add(self, *, flops: float | None = None, samples: float = 0, tokens: float = 0, data_wait_s: float = 0) -> None:
        """Count what a loop of its own kind has done."""
        self.model_flops += flops or 0.0
        self.samples += samples
        self.tokens += tokens
        self.data_wait_s += data_wait_s
        if time.monotonic() - self._told >= self._every_s:
            self.tell()

    def tell(self) -> None:
        """Tell now. What cannot be told is not told."""
        self._told = time.monotonic()
        told: dict[str, object] = {
            "version": VERSION,
            "pid": os.getpid(),
            "elapsed_s": self._told - self._began,
            "steps": self.steps,
            "data_wait_s": self.data_wait_s,
            "dtype": self._dtype,
        }
        for name in ("model_flops", "samples", "tokens"):
            if getattr(self, name):
                told[name] = getattr(self, name)
        data = json.dumps(told).encode()
        with contextlib.suppress(OSError, ValueError):
            if os.path.isdir(self._to):  # noqa: PTH112 one file without more imports than it needs
                self._write(data)
            else:
                self._send(data)

    def _write(self, data: bytes) -> None:
        """Whole or not at all: under another name first."""
        path = f"{self._to}/{os.getpid()}.json"
        with open(f"{path}.new", "wb") as stream:  # noqa: PTH123 likewise
            stream.write(data)
        os.replace(f"{path}.new", path)  # noqa: PTH105 likewise

    def _send(self, data: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)  # noqa: FBT003 the socket module's own form
            sending.sendto(data, self._to)
