# SPDX-License-Identifier: Apache-2.0
"""The reference names every key, says its default, and is the file that is shipped."""

from pathlib import Path

from gpufeed.config.keys import every_key
from gpufeed.config.load import parse
from gpufeed.config.reference import reference
from gpufeed.config.schema import Config

SHIPPED = Path(__file__).parents[2] / "systemd" / "gpufeed.yml"


def test_the_shipped_file_is_the_reference() -> None:
    assert SHIPPED.read_text(encoding="utf-8") == reference(), "write it anew: gpufeed check-config --reference"


def test_the_shipped_file_is_the_defaults_with_and_without_its_comments() -> None:
    text = reference()
    settings = "\n".join(line[1:] for line in text.splitlines() if line.startswith("#") and not line.startswith("##"))
    assert parse(text.encode(), "commented") == Config()
    assert parse(settings.encode(), "uncommented") == Config()
    assert settings.count(":") >= len(every_key())


def test_every_key_says_what_it_is() -> None:
    assert [key.dotted for key in every_key() if not key.help.endswith(".")] == []
