# SPDX-License-Identifier: Apache-2.0
"""Frames without what tells whose node it is: names, serial numbers, addresses; the same by the same."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.host import NodeInfo
from gpufeed.model.jobs import JobOwner, PodName
from gpufeed.redaction import Redaction
from gpufeed.signals.settings import Settings

_NAMES: Final[Mapping[type, Mapping[str, str]]] = {
    GpuIdentity: {"serial": "serial"},
    NodeInfo: {"nodename": "host"},
    JobOwner: {"user": "user", "container": "container"},
    PodName: {"namespace": "namespace", "pod": "pod", "containers": "container"},
}
"""Fields whose form tells nothing: all of what they hold is replaced."""
_SERVER: Final = re.compile(r"\A([^\s/]+)(:/.*)\Z", re.DOTALL)
_MAX_KNOWN: Final = 100_000


class FrameRedaction:
    """Of all frames of one recording."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._known: dict[tuple[str, str], str] = {}

    def frame(self, frame: Frame) -> Frame:
        """The same frame with everything replaced."""
        redacted: Frame = self._any(frame)
        return redacted

    def settings(self, settings: Settings) -> Settings:
        """The same settings under the names that the frames have now."""
        capacity = {self._any(key): one for key, one in settings.storage_capacity.items()}
        return replace(settings, storage_capacity=capacity)

    def _any(self, value: Any) -> Any:  # noqa: ANN401 whatever stands in a frame
        if isinstance(value, str):
            return self._once("", value)
        if isinstance(value, msgspec.Struct):
            names = _NAMES.get(type(value), {})
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            changed = {
                name: new
                for name, old in fields.items()
                if (new := self._whole(names[name], old) if name in names else self._any(old)) is not old
            }
            return msgspec.structs.replace(value, **changed) if changed else value
        if isinstance(value, tuple | list):
            news = [self._any(one) for one in value]
            return value if all(new is old for new, old in zip(news, value, strict=True)) else type(value)(news)
        if isinstance(value, dict):
            return {self._any(key): self._any(one) for key, one in value.items()}
        return value

    def _whole(self, kind: str, value: Any) -> Any:  # noqa: ANN401 text, a mapping of it, or None
        if isinstance(value, dict):
            return {self._any(key): self._whole(kind, one) for key, one in value.items()}
        return self._once(kind, value) if isinstance(value, str) and value else value

    def _once(self, kind: str, text: str) -> str:
        found = self._known.get((kind, text))
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._redaction.name(kind, text) if kind else self._text(text)
            self._known[kind, text] = text if found == text else found
        return text if found == text else found

    def _text(self, text: str) -> str:
        server = _SERVER.match(text)
        if server is not None:
            return self._redaction.name("server", server[1]) + self._redaction.text(server[2])
        return self._redaction.text(text)
