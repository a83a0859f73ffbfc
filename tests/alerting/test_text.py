# SPDX-License-Identifier: Apache-2.0
"""The words of alerts, as Prometheus' template functions write them (text/template of 2.42)."""

from math import inf, nan

import pytest

from gpufeed.alerting.text import duration, filled, percent, template


def test_a_template_names_labels_and_forms_as_prometheus_does() -> None:
    assert template("GPU {gpu}: {value:percent}, {value:duration}, {value}.") == (
        "GPU {{ $labels.gpu }}: {{ $value | humanizePercentage }}, {{ $value | humanizeDuration }}, "
        '{{ $value | printf "%.4g" }}.'
    )


def test_a_text_is_filled_with_labels_and_value() -> None:
    assert filled("GPU {gpu}: {value:percent} {value:number}{nothing}.", {"gpu": "3"}, 0.25) == "GPU 3: 25% 0.25."


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.25, "25%"), (0, "0%"), (1 / 3, "33.33%"), (12.5, "1250%"), (inf, "+Inf%")]
)
def test_percent(ratio: float, text: str) -> None:
    assert percent(ratio) == text


@pytest.mark.parametrize(
    ("length_s", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (0.00025, "250us"),
        (0.00000025, "250ns"),
        (1, "1s"),
        (59.5, "59.5s"),
        (60, "1m 0s"),
        (330, "5m 30s"),
        (3661, "1h 1m 1s"),
        (90061, "1d 1h 1m 1s"),
        (-90, "-1m 30s"),
        (inf, "+Inf"),
        (-inf, "-Inf"),
        (nan, "NaN"),
    ],
)
def test_duration(length_s: float, text: str) -> None:
    assert duration(length_s) == text
