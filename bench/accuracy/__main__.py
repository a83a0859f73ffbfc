# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.accuracy`: run a plan, show the table, write JSON and pictures, and judge if asked to."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.accuracy.classifiers import CLASSIFIERS
from bench.accuracy.held import Held
from bench.accuracy.picture import picture
from bench.accuracy.plans import GPUS, NO_GPM, PLANS, RUN_S, TUNING_SEED, Shard, View, chosen
from bench.accuracy.pool import results, say_aloud
from bench.accuracy.standard import Standard
from bench.accuracy.store import write_json
from bench.accuracy.summary import Row, bars, by_view, pooled, rows_of, said
from bench.accuracy.table import judgement, numbers, table
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.sensors.settings import ALL, INPUTS

FOLDER = Path(".accuracy")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: run to the end, and nothing missed where it is judged."""
    options = _parser().parse_args(arguments)
    shards = _shards(options)
    keeps = options.plan != "full" if options.keep_frames is None else options.keep_frames
    workers = options.workers
    found = list(results(shards, options.classifier, options.folder, workers, say_aloud, keeps_frames=keeps))
    rows = rows_of(found)
    asked = bars(rows, Standard.load())
    held = Held.load() if options.hold else None
    print(table(rows))
    print()
    print(judgement(asked, held))
    report = options.folder / f"report-{options.classifier}"
    write_json(report / "numbers.json", numbers(rows, asked))
    _draw(rows, report)
    say_aloud(f"{report}: numbers.json and a picture of each view")
    if held is not None and options.lower:
        held.lowered(asked).write()
    is_held = held is None or all(held.allows(bar) for bar in asked)
    is_met = not options.judge or all(bar.is_met for bar in asked)
    return int(not (is_held and is_met))


def _draw(rows: Sequence[Row], report: Path) -> None:
    for (is_day, view), of in by_view(rows).items():
        path = report / f"confusion-{view.inputs}-{view.period_ms}{'-days' if is_day else ''}.svg"
        path.write_text(picture(said(of[0]), pooled(of).confusion), encoding="utf-8")


def _shards(options: argparse.Namespace) -> list[Shard]:
    if options.plan is not None:
        return PLANS[options.plan]()
    periods_ms, inputs = options.period or [500], options.inputs or [ALL, NO_GPM]
    views = tuple(View(name, period_ms) for name in inputs for period_ms in periods_ms)
    seeds = range(options.seed, options.seed + options.seeds)
    return chosen(options.scenario or list(JUDGED), seeds, views, options.seconds, options.gpus)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description=__doc__)
    parser.add_argument(
        "--plan", choices=sorted(PLANS), help="what to run; without one, the scenarios named below, or all"
    )
    parser.add_argument("--scenario", action="append", choices=sorted(JUDGED), metavar="NAME", help="may be repeated")
    parser.add_argument("--seed", type=int, default=TUNING_SEED, help="the first")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--period", type=int, action="append", metavar="MS", help="fast period; may be repeated")
    parser.add_argument("--inputs", action="append", choices=sorted(INPUTS), help="may be repeated")
    parser.add_argument("--seconds", type=int, default=RUN_S, help="that each scenario lives")
    parser.add_argument("--gpus", type=int, default=GPUS, help="of the node")
    parser.add_argument("--classifier", choices=sorted(CLASSIFIERS), default="step", help="who is judged")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where results are kept from run to run")
    parser.add_argument(
        "--keep-frames",
        action=argparse.BooleanOptionalAction,
        help="what nodes showed, for the next time: some hundred megabytes; usual but for the full plan",
    )
    parser.add_argument("--judge", action="store_true", help="fail where the standard is not met")
    parser.add_argument("--hold", action="store_true", help="fail where a bar is missed by more than held.toml has it")
    parser.add_argument("--lower", action="store_true", help="with --hold: write what has got better to held.toml")
    return parser


if __name__ == "__main__":
    sys.exit(main())
