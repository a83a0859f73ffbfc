# SPDX-License-Identifier: Apache-2.0
"""One row for each GPU: what it does now, what it did lately, and its numbers."""

from collections.abc import Sequence

from gpufeed.palette import name_of
from gpufeed.web import words
from gpufeed.web.markup import Markup, join, tag
from gpufeed.web.shape import GpuView, History
from gpufeed.web.timeline import swatch, timeline


def gpu_rows(gpus: Sequence[GpuView], past: History, window: tuple[float, int]) -> Markup:
    """All GPUs on one axis of time; `window` is its end (seconds since 1970) and its length in seconds."""
    slots = {one.uuid: one.slots for one in past.gpus}
    rows = (tag("li", *_row(gpu, timeline(slots.get(gpu.uuid, ()), *window)), class_=_tone(gpu)) for gpu in gpus)
    return tag("ol", *rows, class_="gpus")


def _tone(gpu: GpuView) -> str:
    return "gpu is-faulty" if gpu.state == "fault" or gpu.condition != "ok" else "gpu"


def _row(gpu: GpuView, picture: Markup) -> tuple[Markup, ...]:
    now = join(swatch(name_of(gpu.state, gpu.cause)), tag("b", words.label(gpu.state, gpu.cause)))
    sure = tag("small", f" {gpu.confidence:.0%} sure") if gpu.confidence is not None else ""
    title = tag("h3", f"GPU {gpu.index}", " ", tag("small", gpu.name or ""))
    who = tag("div", title, tag("p", now, sure, class_="now"), _notes(gpu), class_="who")
    return who, picture, _numbers(gpu)


def _notes(gpu: GpuView) -> Markup:
    job = f"{gpu.job.scheduler} {gpu.job.namespace} {gpu.job.pod or gpu.job.job} {gpu.job.step}" if gpu.job else ""
    reasons = (tag("li", f"{one.input} ", tag("b", words.evidence(one.value, one.unit))) for one in gpu.evidence)
    why = tag("details", tag("summary", "Why", tag("span", f" GPU {gpu.index}", class_="unseen")),
              tag("ul", *reasons), tag("p", tag("small", f"{gpu.uuid} {gpu.pci_bus_id or ''}")))  # fmt: skip
    return join(
        tag("p", f"{gpu.condition}: {gpu.detail}", class_="note") if gpu.detail else "",
        tag("p", " ".join(job.split()), class_="note") if job else "",
        why,
    )


def _numbers(gpu: GpuView) -> Markup:
    pairs = (
        ("Use", words.percent(gpu.utilization)),
        ("Memory", words.memory(gpu.memory_used_bytes, gpu.memory_total_bytes)),
        ("Power", words.number(gpu.power_watts, "W")),
        ("Temp.", words.number(gpu.temperature_celsius, "°C")),
        ("NVLink", words.flow(gpu.nvlink_bytes_per_second)),
        ("Processes", words.number(gpu.processes, "").rstrip()),
    )
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs))
