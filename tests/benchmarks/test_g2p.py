"""g2p-en's net: its records, phonemes that it writes, error rates, and a net that learns."""

import numpy as np
import pytest

from benchmarks.papers import g2p, g2p_decoding, g2p_net, trainings
from benchmarks.papers.g2p_decoding import Rates, converted, decode, distance

UNITS = 6
SPOKEN = {"cab": "K AE1 B", "bee": "B IY1", "ace": "EY1 S", "bad": "B AE1 D"}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(g2p_net, "UNITS", UNITS)
    monkeypatch.setattr(trainings, "folder", tmp_path)
    words = {word: [tuple(sounds.split())] for word, sounds in SPOKEN.items()}
    monkeypatch.setattr(g2p, "words", lambda: words)
    monkeypatch.setattr(g2p, "BATCH", 2)
    monkeypatch.setattr(g2p, "ROUND", 5)


def arrays(seed):
    """Draw a file like the package's."""
    rng = np.random.default_rng(seed)
    letters, phonemes = len(g2p_net.LETTERS), len(g2p_net.PHONEMES)
    shapes = {"enc_emb": (letters, UNITS), "dec_emb": (phonemes, UNITS)}
    shapes |= {"fc_w": (phonemes, UNITS), "fc_b": (phonemes,)}
    for side in ("enc", "dec"):
        shapes |= {f"{side}_{name}": (3 * UNITS, UNITS) for name in ("w_ih", "w_hh")}
        shapes |= {f"{side}_{name}": (3 * UNITS,) for name in ("b_ih", "b_hh")}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def gru_step(file, side, x, h):
    """Step as PyTorch's GRU does: gates in the order reset, update, candidate."""
    inputs = file[f"{side}_w_ih"] @ x + file[f"{side}_b_ih"]
    states = file[f"{side}_w_hh"] @ h + file[f"{side}_b_hh"]
    first, second = slice(0, UNITS), slice(UNITS, 2 * UNITS)
    reset = 1 / (1 + np.exp(-inputs[first] - states[first]))
    update = 1 / (1 + np.exp(-inputs[second] - states[second]))
    candidate = np.tanh(inputs[2 * UNITS :] + reset * states[2 * UNITS :])
    return (1 - update) * candidate + update * h


def slowly(file, word, starts_with_state):
    state = np.zeros(UNITS)
    for letter in [*word, "</s>"]:
        state = gru_step(file, "enc", file["enc_emb"][g2p_net.LETTERS.index(letter)], state)
    x = file["dec_emb"][g2p_net.PHONEMES.index("<s>")]
    if starts_with_state:
        x, state = state, np.zeros(UNITS)
    written = []
    while len(written) < 20:
        state = gru_step(file, "dec", x, state)
        likeliest = int(np.argmax(file["fc_w"] @ state + file["fc_b"]))
        if g2p_net.PHONEMES[likeliest] == "</s>":
            break
        written.append(g2p_net.PHONEMES[likeliest])
        x = file["dec_emb"][likeliest]
    return tuple(written)


@pytest.mark.parametrize("starts_with_state", [False, True])
def test_phonemes_are_those_of_a_slow_loop(monkeypatch, starts_with_state):
    monkeypatch.setattr(g2p_decoding, "CHUNK", 3)
    file = arrays(9)
    file["fc_b"][g2p_net.END] += 4
    words = ["cab", "a", "queue", "zigzag", "bee", "oxen"]
    expected = [slowly(file, word, starts_with_state) for word in words]
    assert decode(converted(file), words, starts_with_state) == expected
    assert len({len(written) for written in expected}) == 4


def test_letters_are_padded_in_front_and_phonemes_behind():
    spelled = g2p_net.letters_of(["ab", "c"])
    assert spelled["letters"].T.tolist() == [[3, 4, 2], [0, 5, 2]]
    assert spelled["more"].T.tolist() == [[0, 1, 1], [0, 0, 1]]
    b, k = map(g2p_net.PHONEMES.index, "BK")
    spoken = g2p_net.phonemes_of([("B", "K"), ("K",)])
    assert spoken["before"].T.tolist() == [[b, k], [k, 0]]
    assert spoken["label"].T.tolist() == [[b, k, 3], [k, 3, 0]]
    assert spoken["goes_on"].T.tolist() == [[0, 1, 1], [0, 1, 1]]


def test_no_word_is_on_both_sides_of_the_split():
    entries = [f"word{number}" for number in range(200)]
    learned, held_out = g2p.split(entries, 0)
    assert len(held_out) == 10
    assert sorted(learned + held_out) == sorted(entries)
    assert g2p.split(entries, 0) == (learned, held_out) != g2p.split(entries, 1)


def test_rates_compare_with_the_nearest_pronunciation():
    written = [("B", "IY1"), ("B", "IY0", "K"), ("K",), ("B", "EH1")]
    right = [
        [("B", "AH1"), ("B", "IY1")],
        [("B", "IY1", "K")],
        [("AE1", "K", "T", "S"), ("K", "T")],
        [("B", "AE1", "D")],
    ]
    assert Rates.of(written, right) == Rates(words=0.75, unstressed=0.5, phonemes=4 / 10)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_a_distance_counts_edits(one, other, edits):
    assert distance(tuple(one), tuple(other)) == edits


def test_a_net_learns_the_words(monkeypatch):
    monkeypatch.setattr(g2p_net, "UNITS", 24)
    monkeypatch.setattr(g2p, "RATE", 0.02)
    weights = g2p.train(list(SPOKEN), 60, 1)
    assert [" ".join(one) for one in decode(weights, list(SPOKEN), True)] == [*SPOKEN.values()]


def test_a_training_goes_on_where_an_earlier_one_stopped(monkeypatch, tmp_path):
    g2p.train(list(SPOKEN), 7, 1)
    steps, put = [], g2p.put
    monkeypatch.setattr(g2p, "put", lambda learner, batch: steps.append(put(learner, batch)))
    resumed = g2p.train(list(SPOKEN), 10, 1)
    assert len(steps) == 5
    monkeypatch.setattr(trainings, "folder", tmp_path / "another")
    plain = g2p.train(list(SPOKEN), 10, 1)
    assert np.array_equal(resumed.flat, plain.flat)


def test_the_table_says_who_wins(monkeypatch):
    ours, theirs = Rates(0.4, 0.35, 0.125), Rates(0.25, 0.2, 0.0625)
    by_name = {g2p.OURS: ours, g2p.PACKAGED: theirs}
    monkeypatch.setattr(g2p, "rates", lambda name, are_held_out: by_name[name])
    part = g2p.g2p()
    rows = [[str(cell) for cell in row] for row in part.tables[0].rows]
    assert rows[0] == ["g2p-en's own weights", "25.0", "20.0", "6.2", "25.0"]
    assert rows[1] == ["trained here", "40.0", "35.0", "12.5", "40.0"]
    assert "g2p-en wins by 15.0 points of the words held out. The train.py" in part.text()
