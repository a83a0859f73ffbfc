# SPDX-License-Identifier: Apache-2.0
"""Who may ask what: foreign names for a loopback address, and pages of other sites that post to us."""

import ipaddress

from aiohttp import web


def refuse_foreign_host(request: web.Request) -> None:
    """On a loopback address: raise 403 unless the request names it as such.

    A page whose name was pointed at 127.0.0.1 (DNS rebinding) names itself.
    """
    name = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    if name.lower() == "localhost":
        return
    try:
        is_loopback = ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise web.HTTPForbidden(text="served to this machine only; ask for localhost\n")


def refuse_other_sites(request: web.Request) -> None:
    """For requests that change something: raise 403 when a browser says that a page is behind it."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if "Origin" in request.headers or site not in {"none", "same-origin"}:
        raise web.HTTPForbidden(text="not from a page of another site\n")
    if request.can_read_body:
        raise web.HTTPBadRequest(text="no body is expected\n")
