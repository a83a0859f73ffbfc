# SPDX-License-Identifier: Apache-2.0
"""What a reload may change, and what needs a restart."""

from gpufeed.config.keys import every_key, value_at
from gpufeed.config.schema import Config


def changed_keys(old: Config, new: Config) -> tuple[str, ...]:
    """Dotted names of all values that differ, in the order of the schema."""
    return tuple(key.dotted for key in every_key() if key.section is None and value_at(old, key) != value_at(new, key))


def needing_restart(old: Config, new: Config) -> tuple[str, ...]:
    """Those of them that a reload cannot bring into force."""
    changed = set(changed_keys(old, new))
    return tuple(key.dotted for key in every_key() if key.dotted in changed and key.marks.get("needs_restart"))
