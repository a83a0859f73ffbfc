# SPDX-License-Identifier: Apache-2.0
"""Jobs whose GPUs wait for data to be read, or for a checkpoint to be written."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.pipeline.scenario import Family, JudgedScenario
from gpufeed.simulate.pipeline.workload import Checkpoint, Input, Job, Startup, Storage, Training, Work
from gpufeed.simulate.pipeline.workloads import (
    CONVOLUTIONS,
    IMAGES,
    RESNET,
    UNET,
    VOLUME_FILES,
    pretrain,
    together,
    trials,
)


def _starved(
    name: str, description: str, workload: Training, family: Family = "storage", *, is_visible: bool = True
) -> JudgedScenario:
    return JudgedScenario(
        name=name, family=family, description=description, jobs=(Job(workload=workload),), is_visible=is_visible
    )


_SHORT: Final = Work(seconds=0.2, activity=CONVOLUTIONS)
_SERIAL: Final = Storage(of_demand=8.0, rtt_s=0.019)
"""46 MB in windows of 8 MiB: 104 ms to fetch a batch."""

STORAGE_SCENARIOS: Final = (
    _starved("storage_50", "The server gives half of what is asked for.", trials(Storage(of_demand=0.5))),
    _starved("storage_75", "The server gives three quarters.", trials(Storage(of_demand=0.75))),
    _starved("storage_95", "The server falls short by a twentieth.", trials(Storage(of_demand=0.95))),
    _starved(
        "storage_synchronous",
        "The server gives 70 % to ranks that exchange gradients: whoever is served late makes all others wait.",
        together(replace(IMAGES, storage=Storage(of_demand=0.7))),
    ),
    _starved(
        "storage_unet3d",
        "Volumes of 147 MB from a server that gives two thirds.",
        Training(input=replace(VOLUME_FILES, storage=Storage(of_demand=0.66)), works=(UNET,), spread=0.006),
    ),
    _starved(
        "storage_latency_x10",
        "Small files whose opening takes ten times as long as it should; bandwidth is there.",
        Training(
            input=replace(IMAGES, files_per_batch=400, storage=Storage(file_s=0.004, rtt_s=0.008)), works=(RESNET,)
        ),
    ),
    _starved(
        "small_files",
        "The metadata server can open six files where ten are asked for.",
        Training(
            input=replace(IMAGES, files_per_batch=400, workers=8, cores=8, storage=Storage(files_per_s=8500.0)),
            works=(RESNET,),
        ),
    ),
    _starved(
        "storage_bursts",
        "Others' bursts leave a third of the server, for half a minute at a time.",
        trials(Storage(of_demand=1.4, burst_s=30.0, calm_s=45.0, in_burst=0.3)),
    ),
    _starved(
        "cold_then_warm",
        "The first epoch is read from a slow server, the following ones from the page cache.",
        Training(
            input=replace(IMAGES, storage=Storage(of_demand=0.5), dataset_bytes=600 * 46e6, cache_bytes=700 * 46e6),
            works=(RESNET,),
        ),
    ),
    _starved(
        "cache_too_small",
        "Half of the data set fits into the page cache, which keeps a sixth of it from one epoch to the next.",
        Training(
            input=replace(IMAGES, storage=Storage(of_demand=0.6), dataset_bytes=400 * 46e6, cache_bytes=200 * 46e6),
            works=(RESNET,),
        ),
    ),
    _starved(
        "serial_loader",
        "One loader fetches 104 ms and computes 160 ms for a step of 200 ms: either being faster would do.",
        Training(input=Input(storage=_SERIAL, cpu_s=0.16, workers=1), works=(_SHORT,)),
    ),
    _starved(
        "main_thread_loads",
        "No loaders: the main thread fetches, then computes, then trains.",
        Training(input=Input(storage=_SERIAL, cpu_s=0.1, workers=0), works=(RESNET,)),
    ),
    _starved(
        "storage_and_cpu",
        "The server gives 70 % and the processors 75 %: neither alone would help much.",
        Training(input=Input(storage=Storage(of_demand=0.7), cpu_s=4 * 0.224 / 0.75, workers=12), works=(RESNET,)),
    ),
    _starved(
        "disk_slow",
        "The local disk gives 60 %.",
        trials(Storage(kind="disk", of_demand=0.6, rtt_s=0.0003, window=4)),
    ),
    _starved(
        "object_store_slow",
        "An object store over Ethernet gives 60 %: sockets are waited for, no file system knows.",
        trials(Storage(kind="object", of_demand=0.6, rtt_s=0.02, window=16)),
        is_visible=False,
    ),
    _starved(
        "gds_slow",
        "The GPU itself reads from storage that gives 60 %: no loader, no page cache, no pressure.",
        Training(input=Input(storage=Storage(kind="gds", of_demand=0.6), cpu_s=0.002, copy_bytes=0.0), works=(RESNET,)),
        is_visible=False,
    ),
    _starved(
        "startup_scan",
        "Every start looks up all files of the data set, then compiles.",
        replace(together(IMAGES), startup=Startup(scan_files=250_000, compile_s=60.0)),
    ),
    _starved(
        "checkpoint_sync",
        "All ranks stop to write 14 GB each.",
        pretrain(Checkpoint(every_s=150.0)),
        "checkpoint",
    ),
    _starved(
        "checkpoint_first_rank",
        "The first rank writes for all; the others wait for it at a barrier.",
        pretrain(Checkpoint(every_s=150.0, bytes=40e9, by_first_only=True)),
        "checkpoint",
    ),
)
