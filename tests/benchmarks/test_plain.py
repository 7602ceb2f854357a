"""What plain methods read of pictures, their settings, and nets in three precisions."""

import numpy as np

from benchmarks import plain


def test_an_outline_is_what_is_no_background():
    picture = np.random.default_rng(0).integers(60, 196, (3, 32, 32)).astype(float)
    picture[:, 4:8, 10:26] = np.array([255, 0, 255])[:, None, None]
    (row,) = plain.outlines(picture[np.newaxis], plain.saturated)
    assert row[: plain.SIDE**2].min() == 1
    assert row[plain.SIDE**2 :].tolist() == [4, 16, 255, 0, 255]
    (empty,) = plain.outlines(np.full((1, 3, 32, 32), 100.0), plain.saturated)
    assert not empty[plain.SIDE**2 + 2 :].any()


def test_settings_are_those_that_are_best_on_the_last_fifth():
    """On a hill whose top is at -3 and 4; from the middle it is some steps away."""
    asked = []

    class Machine:
        def __init__(self, *place: int) -> None:
            asked.append(place)
            self.lost = abs(place[0] + 3) + abs(place[1] - 4)

        def fit(self, data, labels):
            assert labels.tolist() == [*range(8)]
            return self

        def score(self, data, labels):
            assert labels.tolist() == [8, 9]
            return -float(self.lost)

    axes = (range(-5, 6), range(-5, 6))
    records = {"data": np.zeros((10, 1, 1, 1)), "label": np.arange(10)}
    assert plain.Way(plain.flat, Machine, axes).best(records) == (-3, 4)
    assert len(set(asked)) == len(asked) < 40
    assert plain.Way(plain.flat, Machine, ((2,), (1,))).best(records) == (2, 1)


def test_copies_are_moved_by_a_pixel():
    picture = np.zeros((1, 1, 5, 5))
    picture[0, 0, 2, 2] = 1
    copies = plain.moved(np.concatenate([picture, 2 * picture]))
    places = [tuple(np.argwhere(one[0])[0]) for one in copies]
    assert places == [p for p in ((2, 2), (3, 2), (1, 2), (2, 3), (2, 1)) for _ in range(2)]
    assert copies.max((1, 2, 3)).tolist() == [1, 2] * 5
