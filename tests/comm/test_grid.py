"""More workers than a dozen: grids, and the operations of workers that are connected with few."""

import struct
from itertools import pairwise

import numpy as np
import pytest

from sparknet.comm.grid import DIRECT, Grid
from sparknet.comm.grid_comm import GridComm
from sparknet.comm.local_comm import LocalComm
from sparknet.comm.tcp_comm import TcpComm
from sparknet.errors import ArrayError, CommError, PeerLost
from sparknet.native import NDArray
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.comm import VirtualComm, perform
from tests.comm.groups import group, together

SIZES = [13, 16, 17]
"""A place with two, 4 x 4, a place with two."""


@pytest.mark.parametrize("size", range(1, DIRECT + 1))
def test_a_dozen_speak_all_with_all(size):
    grid = Grid(size)
    assert grid.is_direct
    for rank in range(size):
        assert grid.links(rank) == [one for one in range(size) if one != rank]


@pytest.mark.parametrize("size", [13, 16, 17, 31, 64, 67, 97, 256])
def test_links_are_mutual_few_and_lead_everywhere(size):
    grid = Grid(size)
    links = [grid.links(rank) for rank in range(size)]
    assert all(rank in links[one] for rank in range(size) for one in links[rank])
    assert max(map(len, links)) <= 2.2 * np.log2(size)
    reached, fresh = {0}, [0]
    while fresh:
        fresh = [two for one in fresh for two in links[one] if two not in reached]
        reached.update(fresh)
    assert reached == set(range(size))


def test_sixty_four_have_nine_links():
    assert [len(Grid(64).links(rank)) for rank in (0, 17, 63)] == [9, 9, 9]
    assert Grid(256).axes == (4, 4, 4, 4)
    assert (Grid(61).axes, Grid(61).guests) == ((5, 4, 3), 1)


@pytest.mark.parametrize("size", [13, 16, 64, 67])
def test_shares_cut_the_workers_until_one_place_is_left(size):
    grid = Grid(size)
    for rank in range(size):
        if grid.is_guest(rank):
            continue
        begin, end = 0, size
        for axis in range(len(grid.axes)):
            shares, line = grid.shares(rank, axis), grid.line(rank, axis)
            assert (shares[0][0], shares[-1][1]) == (begin, end)
            assert all(one[1] == two[0] for one, two in pairwise(shares))
            begin, end = shares[line.index(rank)]
        assert begin == rank
        assert end - begin == (2 if grid.guest(rank) else 1)


def by_hand(parts, weights):
    """A mean as the kernel takes it: in double, in this order."""
    total = sum(weights)
    found = np.zeros(len(parts[0]))
    for part, weight in zip(parts, weights, strict=True):
        found = found + weight / total * part.astype(np.float64)
    return found.astype(np.float32), total


def test_the_order_of_sums_of_sixteen():
    """Rank 4 a + b: first over a, then over b."""
    random = np.random.default_rng(1)
    parts = [random.normal(size=50).astype(np.float32) for _ in range(16)]
    weights = [float(one) for one in random.integers(1, 9, 16)]
    columns = [by_hand(parts[b::4], weights[b::4]) for b in range(4)]
    expected, _ = by_hand([part for part, _ in columns], [total for _, total in columns])
    given = [NDArray(part) for part in parts]
    actual = Grid(16).mean(given, weights, NDArray.empty((50,)))
    assert actual.numpy().tobytes() == expected.tobytes()


def test_the_order_of_sums_of_seventeen():
    """Workers 0 and 1 have one place: they come first."""
    random = np.random.default_rng(2)
    parts = [random.normal(size=50).astype(np.float32) for _ in range(17)]
    both = by_hand(parts[:2], [1.0, 1.0])
    places = [both, *((part, 1.0) for part in parts[2:])]
    columns = [
        by_hand([part for part, _ in places[b::4]], [one for _, one in places[b::4]])
        for b in range(4)
    ]
    expected, _ = by_hand([part for part, _ in columns], [total for _, total in columns])
    actual = Grid(17).mean([NDArray(one) for one in parts], [1.0] * 17, NDArray.empty((50,)))
    assert actual.numpy().tobytes() == expected.tobytes()


def operations(comm):
    """What every operation gives, as bytes."""
    random = np.random.default_rng(comm.rank)
    given = random.normal(size=1003).astype(np.float32)
    found = {}

    def done(name: str, buffer: NDArray) -> None:
        found[name] = buffer.numpy().tobytes()

    for name, weight in [("plain", 1.0), ("weighted", float(comm.rank % 3)), ("few", 0.0)]:
        buffer = NDArray(given)
        comm.mean(buffer, 2.0 if name == "few" and comm.rank == 5 else weight)
        done(name, buffer)
    for codec in ("fp16", "int8"):
        for again in range(2):
            buffer = NDArray(given)
            comm.mean(buffer, 1.0 + comm.rank, codec)
            done(f"{codec} {again}", buffer)
    tiny = NDArray(given[:5])
    comm.mean(tiny)
    done("tiny", tiny)
    buffer = NDArray(given)
    comm.reduce_scatter_mean(buffer)
    begin, end = comm.bounds(1003)[comm.rank]
    beside = np.delete(buffer.numpy(), slice(begin, end))
    assert beside.tobytes() == np.delete(given, slice(begin, end)).tobytes()
    comm.all_gather(buffer)
    done("scattered and gathered", buffer)
    for root in (0, 1, comm.size - 1):
        buffer = NDArray(given)
        comm.broadcast(buffer, root)
        done(f"from {root}", buffer)
    comm.broadcast_bytes(memoryview(bytearray()), 3)
    found["gathered"] = comm.gather({"rank": comm.rank, "list": [comm.rank] * 2})
    comm.barrier()
    return found


@pytest.mark.parametrize("size", SIZES)
def test_every_transport_gives_the_same_bits(size):
    with group("tcp", size) as comms:
        assert all(not comm.grid.is_direct for comm in comms)
        over_tcp = together(comms, operations)
        sent = sum(comm.traffic.sent for comm in comms)
        assert sent == sum(comm.traffic.received for comm in comms)
    in_threads = together(LocalComm.group(size), operations)
    virtual = VirtualComm.group(size, Cluster(step=1.0))
    simulated = perform(virtual[0].stage, lambda rank: operations(virtual[rank]))
    assert over_tcp == in_threads == simulated
    assert all(one == over_tcp[0] for one in over_tcp)
    first = over_tcp[0]
    assert first["gathered"] == [{"rank": one, "list": [one] * 2} for one in range(size)]
    given = [np.random.default_rng(rank).normal(size=1003) for rank in range(size)]
    exact = np.mean(np.stack(given).astype(np.float32).astype(np.float64), 0)
    assert np.abs(np.frombuffer(first["plain"], np.float32) - exact).max() < 1e-6
    assert first["scattered and gathered"] == first["plain"]
    weights = [float(rank % 3) for rank in range(size)]
    exact = np.average(np.stack(given), 0, weights)
    assert np.abs(np.frombuffer(first["weighted"], np.float32) - exact).max() < 1e-6
    assert first["few"] == given[5].astype(np.float32).tobytes()
    for root in (0, 1, size - 1):
        assert first[f"from {root}"] == given[root].astype(np.float32).tobytes()


def test_what_a_simulated_message_costs():
    cluster = Cluster(latency=2.0, overhead=0.5, bandwidth=10.0)
    assert cluster.message(40, 12) == 2.0 + 11 * 0.5 + 4.0
    assert cluster.message(40, 64) == 3 * 2.0 + 9 * 0.5 + 4.0
    assert cluster.message(40, 17) == 3 * 2.0 + 7 * 0.5 + 4.0  # 4 x 4, and a guest


def test_weights_that_add_up_to_nothing_are_refused():
    with group("tcp", 13) as comms, pytest.raises(ArrayError, match="add up to 0"):
        together(comms, lambda comm: comm.mean(NDArray.full((1000,), 1.0), 0.0))


@pytest.mark.parametrize("codec", [None, "int8"])
def test_a_dozen_serve_all(codec):
    def work(comm):
        buffer = NDArray.zeros((1000,))
        server = comm.server(buffer, lambda staleness: 1.0, codec)
        server.push(NDArray.full((1000,), 1.0 + comm.rank), [0] * comm.size)
        raised = server.raise_hand(1)
        comm.barrier()
        versions = server.pull(buffer, exact=True)
        hands = server.raise_hand(0)
        comm.barrier()
        server.close()
        return raised, hands, max(versions), sum(versions), buffer.numpy().copy()

    actual = {}
    for kind in ("tcp", "local"):
        with group(kind, 17) as comms:
            actual[kind] = together(comms, work)
            for comm in comms:
                owners = comm.served_by()
                assert owners == [0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 14, 15]
                if kind == "tcp":
                    expected = 16 if comm.rank in owners else 12
                    assert len(comm._requests) == expected
    for one in (*actual["tcp"], *actual["local"]):
        assert one[1:4] == (17, 17, 17 * 12)
        assert np.allclose(one[4], sum(range(1, 18)), rtol=0.01 if codec else 0)
    assert sorted(one[0] for one in actual["tcp"]) == list(range(1, 18))


def test_who_is_lost_is_named_to_those_who_are_not_connected_with_it():
    """Worker 16 is worker 15's neighbour on one axis; worker 0 hears of it from others."""

    def work(comm: TcpComm) -> str:
        if comm.rank == 14:
            comm._heartbeats._wake.close()
            comm._heartbeats._thread.join()
            for pipes in comm._pipes:
                for pipe in pipes:
                    pipe.end()
            return ""
        with pytest.raises(PeerLost, match=r"worker 14 .* is lost") as caught:
            comm.mean(NDArray.full((100_000,), 1.0))
        return str(caught.value)

    with group("tcp", 16) as comms:
        assert 14 not in comms[0].grid.links(0)
        assert all("worker 14" in said for said in together(comms, work) if said)


def test_what_is_handed_on_is_checked():
    def work(comm: TcpComm) -> None:
        assert isinstance(comm, GridComm)
        if comm.rank == 1:
            head = struct.pack("!IIQ", 0, 2, 1 << 40)
            comm._number += 1
            comm._announce(0, len(head))
            comm._go_on(0, memoryview(head))
        elif comm.rank == 0:
            comm._number += 1
            with pytest.raises(CommError, match="worker 1 hands on more than there is"):
                comm._handed(1, 1 << 20)
        comm._flush()

    with group("tcp", 16) as comms:
        together(comms, work)
