# SPDX-License-Identifier: Apache-2.0
"""The keys of `web`."""

from typing import Annotated, Final

from msgspec import Struct

from gpufeed.config.kinds import Address, HttpPath
from gpufeed.config.mark import key

DEFAULT_PORT: Final = 9937
"""Registration pending."""


class Web(Struct, frozen=True, kw_only=True):
    """What is served over HTTP, where and to whom."""

    listen_addresses: Annotated[
        tuple[Address, ...],
        key("Where /metrics, the page and the API are served.", flag="web.listen-address", needs_restart=True),
    ] = (f"0.0.0.0:{DEFAULT_PORT}",)
    systemd_socket: Annotated[
        bool,
        key(
            "Serve on the sockets handed over by systemd instead of listen_addresses.",
            flag="web.systemd-socket",
            needs_restart=True,
        ),
    ] = False
    ui: Annotated[bool, key("Serve the page at / and the API.", needs_restart=True)] = True
    ui_listen_addresses: Annotated[
        tuple[Address, ...] | None,
        key("Serve the page and the API here instead of beside /metrics.", needs_restart=True),
    ] = None
    ui_jobs: Annotated[bool, key("Name jobs and pods on the page and in the API.")] = False
    config_file: Annotated[
        str | None,
        key(
            "TLS and basic authentication, in the exporter-toolkit's format; followed when the file changes.",
            flag="web.config.file",
            needs_restart=True,
        ),
    ] = None
    telemetry_path: Annotated[HttpPath, key("Path of the metrics.", flag="web.telemetry-path", needs_restart=True)] = (
        "/metrics"
    )
    enable_lifecycle: Annotated[
        bool, key("Allow POST to /-/reload. SIGHUP always reloads.", flag="web.enable-lifecycle")
    ] = False
    max_requests: Annotated[
        int, key("Scrapes answered at the same time; 0 is no limit.", flag="web.max-requests", ge=0)
    ] = 40
