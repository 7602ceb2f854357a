"""What every comm promises, over threads and over connections; and that both give the same bits."""

import socket
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.comm.codecs import Codec
from sparknet.comm.collectives import Comm
from sparknet.errors import CommError, PeerLost
from sparknet.native import NDArray
from tests.comm.groups import group, together

KINDS = ("local", "tcp")
SIZES = (0, 1, 2, 7, 1000, 4099)
CODECS: tuple[Codec | None, ...] = (None, "fp16", "int8", "sparse")


@pytest.fixture(scope="module")
def groups():
    """Groups of 1 to 5 over either wire, used again and again."""
    entered = {(kind, size): group(kind, size) for kind in KINDS for size in range(1, 6)}
    yield {key: context.__enter__() for key, context in entered.items()}
    for context in entered.values():
        context.__exit__(None, None, None)


def numbers(rank: int, size: int, seed: int = 0) -> NDArray:
    rng = np.random.default_rng([seed, rank])
    return NDArray.view(rng.standard_normal(size).astype(np.float32))


def in_double(size, weights, seed=0):
    parts = [np.asarray(numbers(rank, size, seed)) for rank in range(len(weights))]
    return np.average(np.asarray(parts, np.float64), axis=0, weights=weights)


def a_bit_of_all(comm: Comm, size: int, seed: int, weights: list[float]) -> list[bytes]:
    """Every operation on buffers, and the bits that it left."""
    found = []
    for codec in CODECS:
        for weight in (1.0, weights[comm.rank]):
            buffer = numbers(comm.rank, size, seed)
            comm.mean(buffer, weight, codec)
            found.append(np.asarray(buffer).tobytes())
    buffer = numbers(comm.rank, size, seed)
    comm.reduce_scatter_mean(buffer)
    comm.all_gather(buffer)
    assert np.asarray(buffer).tobytes() == found[0]
    buffer = numbers(comm.rank, size, seed)
    comm.broadcast(buffer, comm.size - 1)
    return [*found, np.asarray(buffer).tobytes()]


@settings(max_examples=25)
@given(
    size=st.sampled_from(SIZES) | st.integers(0, 700),
    workers=st.integers(1, 5),
    seed=st.integers(0, 9),
    weights=st.lists(st.floats(0.01, 100), min_size=5, max_size=5),
)
def test_all_workers_have_the_same_bits_over_either_wire(groups, size, workers, seed, weights):
    both = [
        together(groups[kind, workers], lambda c: a_bit_of_all(c, size, seed, weights))
        for kind in KINDS
    ]
    first = both[0][0]
    assert all(one == first for actual in both for one in actual)
    plain, weighted = (np.frombuffer(bits, np.float32) for bits in first[:2])
    np.testing.assert_allclose(plain, in_double(size, [1.0] * workers, seed), 1e-6, 1e-6)
    np.testing.assert_allclose(weighted, in_double(size, weights[:workers], seed), 1e-6, 1e-6)
    assert first[-1] == np.asarray(numbers(workers - 1, size, seed)).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_of_weight_zero_counts_for_nothing(groups, kind):
    def work(comm: Comm) -> NDArray:
        buffer = NDArray.full((5,), float("nan") if comm.size == 1 else comm.rank)
        comm.mean(buffer, 0.0 if comm.rank == 2 else 1.0)
        return buffer

    for buffer in together(groups[kind, 3], work):
        assert buffer.equals([0.5] * 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_of_several_chunks(kind):
    """Longer than what is received, averaged and sent on at a time."""
    size = 3_333_333

    def work(comm: Comm) -> bytes:
        buffer = numbers(comm.rank, size)
        comm.mean(buffer)
        return np.asarray(buffer).tobytes()

    with group(kind, 2) as comms:
        one, other = together(comms, work)
    assert one == other
    expected = in_double(size, [1.0, 1.0])
    np.testing.assert_allclose(np.frombuffer(one, np.float32), expected, 1e-6, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 3])
def test_small_things(groups, kind, workers):
    def work(comm):
        comm.barrier()
        return [
            comm.gather({"rank": comm.rank, "name": "ü", "list": [1.5, None]}),
            comm.any(comm.rank == comm.size - 1),
            comm.any(False),
            comm.max(-comm.rank),
            comm.sum(0.1 * (comm.rank + 1)),
        ]

    gathered = [{"rank": rank, "name": "ü", "list": [1.5, None]} for rank in range(workers)]
    total = sum(0.1 * (rank + 1) for rank in range(workers))
    for found in together(groups[kind, workers], work):
        assert found == [gathered, True, False, 0.0, total]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000])
def test_slices_cover_the_buffer(groups, kind, size):
    spans = groups[kind, 3][0].bounds(size)
    assert (spans[0][0], spans[-1][1]) == (0, size)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert max(end - begin for begin, end in spans) - min(e - b for b, e in spans) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_over_four_moves_what_it_must(kind):
    """Both ways each worker sends three quarters of a buffer, and receives as much."""
    size = 4000

    def work(comm: Comm) -> tuple[int, int]:
        comm.reduce_scatter_mean(numbers(comm.rank, size))
        comm.all_gather(numbers(comm.rank, size))
        return comm.traffic.sent, comm.traffic.received

    with group(kind, 4) as comms:
        for moved in together(comms, work):
            assert moved == (2 * 3 * size, 2 * 3 * size)


@pytest.mark.parametrize("kind", KINDS)
def test_pushes_add_up_and_versions_count_them(kind):
    size = 1001

    def work(comm: Comm) -> tuple[list[int], list[list[int]], NDArray]:
        server = comm.server(NDArray.full((size,), 10.0), lambda staleness: 1.0)
        into = NDArray.zeros((size,))
        seen = server.pull(into)
        assert into.equals([10.0] * size)
        comm.barrier()
        stale = [server.push(NDArray.full((size,), 1.0), seen) for _ in range(4)]
        comm.barrier()
        versions = server.pull(into)
        comm.barrier()
        server.close()
        return versions, stale, into

    with group(kind, 3) as comms:
        actual = together(comms, work)
    for versions, _, into in actual:
        assert versions == [12, 12, 12]
        assert into.equals([22.0] * size)
    for shard in range(3):  # every place in the line is taken once
        assert sorted(s[shard] for _, stale, _ in actual for s in stale) == list(range(12))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stale_is_damped_and_still_counted(kind):
    def work(comm: Comm) -> NDArray:
        server = comm.server(NDArray.zeros((6,)), lambda staleness: 0.5**staleness)
        for turn in range(comm.size):
            if turn == comm.rank:
                assert server.push(NDArray.full((6,), 1.0), [0, 0]) == [turn, turn]
            comm.barrier()
        into = NDArray.zeros((6,))
        assert server.pull(into) == [2, 2]
        comm.barrier()
        server.close()
        return into

    with group(kind, 2) as comms:
        for into in together(comms, work):
            assert into.equals([1.5] * 6)


@pytest.mark.parametrize(("codec", "each"), [(None, 4096), ("fp16", 2048), ("int8", 1040)])
@pytest.mark.parametrize("kind", KINDS)
def test_pushes_and_pulls_are_counted_where_they_are_sent(kind, codec, each):
    """Four slices of 1024 numbers: every worker sends three of its push and three pulls of its."""

    def work(comm: Comm) -> tuple[int, int, bool]:
        server = comm.server(NDArray.zeros((4096,)), lambda staleness: 1.0, codec)
        comm.barrier()
        before = replace(comm.traffic)
        server.push(NDArray.full((4096,), 0.5), [0] * 4)
        comm.barrier()
        into = NDArray.zeros((4096,))
        server.pull(into)
        comm.barrier()
        server.close()
        small = 3 * len("null") if kind == "tcp" else 0
        sent = comm.traffic.sent - before.sent - 2 * small
        received = comm.traffic.received - before.received - 2 * small
        return sent, received, into.equals([2.0] * 4096)

    with group(kind, 4) as comms:
        assert together(comms, work) == [(6 * each, 6 * each, True)] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_coded_pull_makes_good_what_the_last_one_lost(kind):
    """The differences to what the worker has shrink with each pull; an exact one has none."""
    values = np.random.default_rng(0).standard_normal(1000)

    def work(comm: Comm) -> list[float]:
        server = comm.server(NDArray.zeros((1000,)), lambda staleness: 1.0, "int8")
        if comm.rank == 0:
            for _ in range(3):
                server.push(NDArray.view(values.astype(np.float32)), [0, 0])
        comm.barrier()
        into, errors = NDArray.zeros((1000,)), []
        exact = NDArray.zeros((1000,))
        for _ in range(3):
            server.pull(into)
            errors.append(np.array(into))
        server.pull(exact, exact=True)
        comm.barrier()
        server.close()
        return [float(np.abs(one - np.array(exact)).max()) for one in errors]

    with group(kind, 2) as comms:
        for first, second, third in together(comms, work):
            assert first > 1e-3
            assert second < first / 50
            assert third < second / 50 or third < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_hands_are_counted(kind):
    def work(comm: Comm) -> tuple[int, int, int]:
        server = comm.server(NDArray.zeros((8,)), lambda staleness: 1.0)
        seen = [server.raise_hand(0)]
        comm.barrier()
        mine = server.raise_hand(1)
        comm.barrier()
        seen.append(server.raise_hand(0))
        comm.barrier()
        server.close()
        return seen[0], mine, seen[1]

    with group(kind, 3) as comms:
        actual = together(comms, work)
    assert [(before, after) for before, _, after in actual] == [(0, 3)] * 3
    assert sorted(mine for _, mine, _ in actual) == [1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_one_server_after_another(kind):
    def work(comm: Comm) -> list[float]:
        found = []
        for value in (1.0, 2.0):
            server = comm.server(NDArray.full((4,), value), lambda staleness: 1.0)
            into = NDArray.zeros((4,))
            server.pull(into)
            comm.barrier()
            server.close()
            found.append(into.sum())
        return found

    with group(kind, 2) as comms:
        assert together(comms, work) == [[4.0, 8.0]] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_groups_do_not_meet_each_other(kind):
    def work(comm: Comm, value: float) -> float:
        buffer = NDArray.full((10,), value)
        for _ in range(20):
            comm.mean(buffer)
        return float(buffer[0])

    with group(kind, 2) as ones, group(kind, 3) as twos:
        both = [*ones, *twos]
        assert together(both, lambda comm: work(comm, comm.size)) == [2.0, 2.0, 3.0, 3.0, 3.0]


@pytest.mark.parametrize("kind", KINDS)
def test_who_waits_for_one_that_closes_is_told_who(kind):
    def work(comm: Comm) -> str:
        comm.barrier()
        if comm.rank == 1:
            comm.close()
            return ""
        with pytest.raises(PeerLost) as caught:
            comm.mean(NDArray.zeros((9,)))
        assert caught.value.rank == 1
        return str(caught.value)

    with group(kind, 2) as comms:
        assert together(comms, work)[0].startswith("worker 1 on ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_comm_that_was_closed_says_so(kind):
    with group(kind, 2) as comms:
        comms[0].close()
        comms[0].close()
        with pytest.raises(CommError, match="closed"):
            comms[0].barrier()


def test_buffers_of_different_lengths_are_refused():
    def work(comm: Comm) -> None:
        with pytest.raises(CommError):
            comm.mean(NDArray.zeros((100 + 8 * comm.rank,)))
        comm.close()

    with group("tcp", 2) as comms:
        together(comms, work)


def test_workers_out_of_step_are_refused():
    def work(comm: Comm) -> None:
        def act():
            if comm.rank:
                comm.broadcast(NDArray.zeros((10,)), root=0)
            else:
                comm.gather("something else")
            comm.barrier()

        with pytest.raises(CommError):
            act()
        comm.close()

    with group("tcp", 2) as comms:
        together(comms, work)


def test_over_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with group("tcp", 2, "::1") as comms:
        assert together(comms, lambda comm: comm.sum(1)) == [2.0, 2.0]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
def test_nothing_is_left_behind():
    """No thread and no open file, also after servers and a lost worker."""

    def work(comm: Comm) -> None:
        server = comm.server(NDArray.zeros((8,)), lambda staleness: 1.0)
        server.pull(NDArray.zeros((8,)))
        comm.barrier()
        server.close()
        comm.mean(NDArray.zeros((5000,)))

    with group("tcp", 3) as comms:  # what the first use of anything keeps open
        together(comms, work)
    before = threading.active_count(), open_files()
    with group("tcp", 3) as comms:
        together(comms, work)
    assert (threading.active_count(), open_files()) == before
