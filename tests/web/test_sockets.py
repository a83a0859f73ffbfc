# SPDX-License-Identifier: Apache-2.0
"""Listening: free ports, addresses in use, and what is only for this machine."""

import socket

import pytest

from gpufeed.web.sockets import BindError, bind, is_loopback_only, shown


def test_port_zero_is_a_free_port_that_is_named() -> None:
    (one,) = bind([("127.0.0.1", 0)])
    with one:
        host, _, port = shown(one).partition(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        assert is_loopback_only([one])


def test_an_address_in_use_is_named_and_nothing_stays_open() -> None:
    (taken,) = bind([("127.0.0.1", 0)])
    with taken:
        port = taken.getsockname()[1]
        with pytest.raises(BindError, match=rf"cannot listen on 127\.0\.0\.1:{port}: Address already in use"):
            bind([("127.0.0.1", 0), ("127.0.0.1", port)])


def test_an_empty_host_is_every_address() -> None:
    (one,) = bind([("", 0)])
    with one, socket.create_connection(("127.0.0.1", one.getsockname()[1]), timeout=5):
        assert not is_loopback_only([one])


def test_a_name_is_resolved_to_all_its_addresses_on_one_port() -> None:
    sockets = bind([("localhost", 0)])
    assert len({one.getsockname()[1] for one in sockets}) == 1
    assert is_loopback_only(sockets)
    for one in sockets:
        one.close()
