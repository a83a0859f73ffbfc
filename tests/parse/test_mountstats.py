# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/mountstats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.parse.mountstats import NfsBytes, NfsOperation, NfsTransport, parse_mountstats

LOCAL = b"""\
device /dev/vda mounted on / with fstype ext4
no device mounted on /proc with fstype proc
device sunrpc mounted on /var/lib/nfs/rpc_pipefs with fstype rpc_pipefs
device nfsd mounted on /proc/fs/nfsd with fstype nfsd
"""

V3 = b"""\
device nas1:/export/sets mounted on /data/sets with fstype nfs statvers=1.1
\topts:\trw,vers=3,rsize=1048576,wsize=1048576,hard,proto=tcp,nconnect=2,timeo=600,addr=10.0.0.9
\tage:\t86400
\tcaps:\tcaps=0x3fc7,wtmult=512
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
\tbytes:\t9000 800 70 6 5000000000 400 30 20
\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)
\txprt:\ttcp 789 1 2 0 3 500 499 1 70 8 64 90 11
\txprt:\ttcp 790 1 1 0 0 400 400 0 60 0 64 80 10
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t        READ: 1000 1003 2 128000 5000100000 1500 9000 10600
\t       WRITE: 10 10 0 4000 1200 5 30 36
"""

V42 = b"""\
device nas2:/home mounted on /home\\040of\\040all with fstype nfs4 statvers=1.1
  opts:   rw,vers=4.2,proto=rdma,clientaddr=10.0.0.1
  age:    5
  bytes:  1 2 3 4 5 6 7 8
  RPC iostats version: 1.1  p/v: 100003/4 (nfs)
  xprt:   rdma 0 2 3 0 4 50 49 0 7 6 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
  per-op statistics
          READ: 8 8 0 100 200 1 20 22 3
          READ_PLUS: 0 0 0 0 0 0 0 0 0
"""


def test_server_bytes_and_cached_bytes_are_apart() -> None:
    (mount,) = parse_mountstats(LOCAL + V3).rows
    assert mount.transferred == NfsBytes(
        normal_read=9000, normal_write=800, direct_read=70, direct_write=6, server_read=5_000_000_000, server_write=400
    )


def test_an_operation_has_calls_retransmissions_and_seconds() -> None:
    (mount,) = parse_mountstats(V3).rows
    assert mount.operations is not None
    assert mount.operations["READ"] == NfsOperation(
        calls=1000,
        transmissions=1003,
        timeouts=2,
        sent_bytes=128_000,
        received_bytes=5_000_100_000,
        queue_s=1.5,
        round_trip_s=9.0,
        execute_s=10.6,
    )


def test_operations_that_never_happened_are_passed_over() -> None:
    (mount,) = parse_mountstats(V3).rows
    assert mount.operations is not None
    assert sorted(mount.operations) == ["READ", "WRITE"]


def test_a_ninth_column_counts_errors() -> None:
    (mount,) = parse_mountstats(V42).rows
    assert mount.operations is not None
    assert mount.operations["READ"].errors == 3


def test_every_connection_of_nconnect_is_kept() -> None:
    (mount,) = parse_mountstats(V3).rows
    assert [transport.sends for transport in mount.transports] == [500, 400]
    assert mount.transports[0] == NfsTransport(
        protocol="tcp", sends=500, receives=499, bad_ids=1, request_queue_sum=70, backlog_sum=8
    )


@pytest.mark.parametrize(
    ("line", "sends"),
    [
        (b"udp 700 1 22 21 0 5 4", [22]),
        (b"udp 700 1 22 21 0 5 4 2 1 0", [22]),
        (b"rdma 0 2 3 0 4 50 49 0 7 6 1 2 3", [50]),
        (b"local 1 2 3 4 60 59 0 1 0", [60]),
        (b"tcp 700 1 2 3 4 5", []),
        (b"tcp 700 1 2 3 4 5 6 x 8 9", []),
        (b"quic 1 2 3 4 5 6 7 8 9 10", []),
        (b"", []),
    ],
)
def test_each_transport_has_its_own_layout_and_an_unknown_one_hurts_nobody(line: bytes, sends: list[int]) -> None:
    block = V3.replace(b"tcp 789 1 2 0 3 500 499 1 70 8 64 90 11", line, 1).replace(b"\txprt:\ttcp 790", b"\tother:\t")
    (mount,) = parse_mountstats(block).rows
    assert [transport.sends for transport in mount.transports] == sends


def test_indentation_by_blanks_and_escaped_mount_points_are_read() -> None:
    (mount,) = parse_mountstats(V42).rows
    assert (mount.mountpoint, mount.fstype, mount.age_s) == ("/home of all", "nfs4", 5)
    assert mount.options["vers"] == "4.2"
    assert mount.options["rw"] == ""


def test_file_systems_that_are_no_nfs_client_are_skipped() -> None:
    assert parse_mountstats(LOCAL).rows == ()
    assert parse_mountstats(LOCAL).rejects == ()


def test_lines_of_a_mount_without_a_source_do_not_leak_into_the_mount_before_it() -> None:
    mounts = parse_mountstats(V3 + b"no device mounted on /run with fstype tmpfs\n" + V42).rows
    assert [mount.source for mount in mounts] == ["nas1:/export/sets", "nas2:/home"]


def test_a_mount_point_that_is_not_utf8_is_spelled_out() -> None:
    (mount,) = parse_mountstats(V3.replace(b"/data/sets", b"/data/s\xe9ts")).rows
    assert mount.mountpoint == "/data/s\\xe9ts"


def test_a_lazily_unmounted_file_system_lacks_its_blocks() -> None:
    (mount,) = parse_mountstats(b"device nas1:/x mounted on /x with fstype nfs4 statvers=1.1\n").rows
    assert (mount.transferred, mount.operations, mount.age_s, mount.transports) == (None, None, None, ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"bytes:\t9000", b"bytes:\tmany"),
        (b"bytes:\t9000 800 70 6 5000000000 400 30 20", b"bytes:\t1 2 3"),
        (b"READ: 1000 1003", b"READ: 1000 -3"),
        (b"age:\t86400", b"age:\told"),
        (b"WRITE: 10 10 0 4000 1200 5 30 36", b"WRITE: 10 10"),
        (b" with fstype nfs", b""),
    ],
)
def test_a_broken_mount_is_rejected_alone(old: bytes, new: bytes) -> None:
    parsed = parse_mountstats(V3.replace(old, new) + V42)
    assert [mount.source for mount in parsed.rows] == ["nas2:/home"]
    assert len(parsed.rejects) == 1
    assert parsed.rejects[0].where.startswith("mountstats")


def test_an_empty_file_has_no_mounts() -> None:
    assert parse_mountstats(b"").rows == ()
    assert parse_mountstats(b"only noise\n").rows == ()


@given(st.lists(st.integers(1, 2**60), min_size=8, max_size=9), st.lists(st.integers(0, 2**60), min_size=8, max_size=8))
def test_a_mount_survives_the_kernels_spelling(operation: list[int], transferred: list[int]) -> None:
    text = (
        "device a:/b mounted on /c with fstype nfs4 statvers=1.1\n"
        f"\tbytes:\t{' '.join(map(str, transferred))} \n"
        f"\tper-op statistics\n\t        READ: {' '.join(map(str, operation))}\n"
    )
    (mount,) = parse_mountstats(text.encode()).rows
    assert mount.transferred is not None
    assert mount.operations is not None
    assert mount.transferred.server_read == transferred[4]
    assert mount.operations["READ"].execute_s == operation[7] / 1000


@given(st.binary(max_size=200), st.integers(0, len(V3)))
def test_any_bytes_anywhere_in_a_block_hurt_no_other_mount(noise: bytes, place: int) -> None:
    parsed = parse_mountstats(V3[:place] + noise + V3[place:] + b"\n" + V42)
    assert "nas2:/home" in [mount.source for mount in parsed.rows]
