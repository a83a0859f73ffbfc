# SPDX-License-Identifier: Apache-2.0
"""What is lived and seen in a run of the bench: scenarios, seeds, inputs, fast periods, and days of healthy GPUs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.sensors.settings import ALL, INPUTS

NO_GPM: Final = "no_gpm"
MISSING: Final = tuple(name for name in INPUTS if name not in (ALL, NO_GPM))
HEALTHY: Final = ("healthy", "serving")
"""Families in which nobody starves, whatever it looks like."""

TUNING_SEED: Final = 1
CI_SEEDS: Final = (7001,)
FULL_SEEDS: Final = tuple(range(9001, 9011))
"""Of others nobody may know what they hold: rules are tuned on TUNING_SEED and the ones after it."""

RUN_S: Final = 600
GPUS: Final = 8
FEW_GPUS: Final = 4
PAIR: Final = 2
WHOLE_EVERY: Final = 5
"""Of the seeds of the full plan: nodes with all their GPUs. What is judged costs nearly as much as it has GPUs."""
DAY_S: Final = 86_400 // GPUS
"""For which a node lives a GPU-day."""


class View(NamedTuple):
    """One way to look at a node."""

    inputs: str
    period_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One node that is lived once, however many look at it."""

    scenario: str
    seed: int
    views: tuple[View, ...]
    seconds: int = RUN_S
    model: str = "h100"
    gpus: int = GPUS
    is_day: bool = False  # a part of the healthy days: long, and only held to what healthy nodes are held to

    @property
    def name(self) -> str:
        """The same for the same shard only."""
        views = "+".join(f"{inputs}@{period_ms}" for inputs, period_ms in self.views)
        return f"{self.scenario}-{self.model}-{self.gpus}-{self.seed}-{self.seconds}-{views}"

    @property
    def cost(self) -> float:
        """Readings of GPUs: in proportion to how long it takes."""
        return sum(self.seconds * 1000 / view.period_ms for view in self.views) * (2 + self.gpus)

    def written(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def ci() -> list[Shard]:
    """Minutes: some of every family, with GPM and without, and five healthy GPU-days."""
    views = (View(ALL, 500), View(NO_GPM, 500))
    shards = [
        Shard(scenario=name, seed=seed, views=views, gpus=_enough(name)) for seed in CI_SEEDS for name in ci_scenarios()
    ]
    return [*shards, *healthy_days(5, CI_SEEDS[0])]


def full() -> list[Shard]:
    """Hours: everything, at three fast periods, and with every input missing in turn."""
    return [*_everything(FULL_SEEDS), *healthy_days(100, FULL_SEEDS[0])]


def chosen(
    scenarios: Sequence[str], seeds: Iterable[int], views: tuple[View, ...], seconds: int, gpus: int
) -> list[Shard]:
    """What somebody wants to know while tuning."""
    return [
        Shard(scenario=name, seed=seed, views=views, seconds=seconds, gpus=gpus) for name in scenarios for seed in seeds
    ]


PLANS: Final = {"ci": ci, "full": full}

_OF_FAMILY: Final = {"healthy": 5, "storage": 5, "host": 4, "link": 4, "peer": 3, "serving": 2}
_OF_OTHERS: Final = 2
_TOGETHER: Final = ("link", "peer", "shared")
"""Families whose GPUs have to do with one another: of them it takes more than a pair to see who waits for whom."""


def ci_scenarios() -> list[str]:
    """From each family as many as matter, spread over it."""
    found: list[str] = []
    for family in dict.fromkeys(scenario.family for scenario in JUDGED.values()):
        names = [name for name, scenario in JUDGED.items() if scenario.family == family]
        wanted = min(len(names), _OF_FAMILY.get(family, _OF_OTHERS))
        found.extend(names[at * len(names) // wanted] for at in range(wanted))
    return found


def healthy_days(days: int, seed: int) -> Iterator[Shard]:
    """GPU-days at a second, spread over all healthy scenarios; GPM is looked at every other time."""
    healthy = [scenario.name for scenario in JUDGED.values() if is_healthy(scenario)]
    for at in range(days):
        view = View(NO_GPM if at % 2 else ALL, 1000)
        yield Shard(
            scenario=healthy[at * len(healthy) // days], seed=seed + at, views=(view,), seconds=DAY_S, is_day=True
        )  # fmt: skip


def is_healthy(scenario: JudgedScenario) -> bool:
    """Whether any starvation found in it is false but for what its truth says."""
    return scenario.family in HEALTHY


def _enough(name: str) -> int:
    """GPUs with which everything about a scenario can be seen."""
    return FEW_GPUS if JUDGED[name].family in _TOGETHER else PAIR


def _everything(seeds: tuple[int, ...]) -> Iterator[Shard]:
    for at, seed in enumerate(seeds):
        missing, is_whole = MISSING[at % len(MISSING)], at % WHOLE_EVERY == 0
        usual = (View(ALL, 500), View(NO_GPM, 500), View(missing, 500))
        # the shortest period costs as much as all others together: with GPM and without it by turns
        other = (View((ALL, NO_GPM)[at // 2 % 2], 200), View(ALL, 1000), View(NO_GPM, 1000))
        for name in JUDGED:
            for views in (usual, other):
                yield Shard(scenario=name, seed=seed, views=views, gpus=GPUS if is_whole else _enough(name))
