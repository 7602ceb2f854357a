"""Yao et al.'s news: the records of texts, and a recurrent net that learns from them."""

import numpy as np
import pytest

from benchmarks.papers import news
from sparknet.training.planning.trials import Spread

WORDS = ["corn", "day", "gold", "of", "the"]
TEXTS = np.float32([[6, 2 + 2 * (day % 2), 5, 3, 1, 0, 0] for day in range(128)])
PART = {"ids": TEXTS, "label": np.float32([day % 2 for day in range(128)])}


@pytest.fixture
def corpus(monkeypatch):
    monkeypatch.setattr(news, "LENGTH", 6)
    monkeypatch.setattr(news, "EPOCHS", 8)
    parts = [news.padded_in_front(PART)] * 2
    monkeypatch.setattr(news, "corpus", lambda: (parts, WORDS, 2))
    news.accuracy.cache_clear()
    yield parts
    news.accuracy.cache_clear()


def test_a_text_ends_at_the_last_step_and_starts_after_its_padding(corpus):
    learned = corpus[0]
    assert learned["ids"][0].tolist() == [0, 6, 2, 5, 3, 1]
    assert learned["cont"][0].tolist() == [0, 0, 1, 1, 1, 1]
    assert learned["label"][:4].tolist() == [0, 1, 0, 1]


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize("arm", ["one worker", "AllReduce"])
def test_an_lstm_learns_the_topics_by_one_worker_and_by_four(arm):
    assert news.accuracy("LSTM, vectors random at first", arm, 1) == 1.0


@pytest.mark.usefixtures("corpus")
def test_a_seed_and_the_vectors_decide_a_training(monkeypatch):
    seen = []

    def train_by(arm, solver, records, steps, seed, *, weights):
        seen.append(weights)
        raise StopIteration

    monkeypatch.setattr(news, "train_by", train_by)
    monkeypatch.setattr(news, "vectors", lambda: np.full((5, 50), 7, np.float32))
    for seed in (1, 1, 2):
        with pytest.raises(StopIteration):
            news.accuracy("LSTM, vectors from a file", "one worker", seed)
    first, again, other = (weights["steps"][0] for weights in seen)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (np.asarray(seen[0]["words"][0])[2:] == 7).all()


def test_the_table_has_the_published_means_beside_ours(monkeypatch):
    monkeypatch.setattr(news, "accuracy", lambda way, arm, seed: 0.9 + seed / 100)
    monkeypatch.setattr(news, "linear", lambda is_tuned: (0.875, 10))
    rows = [[str(cell) for cell in row] for row in news.news().tables[0].rows]
    ours = Spread.of([91.0, 92.0]).text(1, 1)
    assert rows[0][:3] == ["tf-idf, logistic regression, C = 1", "87.0", "87.5"]
    assert rows[1][2] == "87.5 (C = 10)"
    assert rows[3] == ["LSTM, vectors random at first", "85.5 ± 0.4", ours, *["–"] * 4]
    assert rows[4] == ["LSTM, vectors from a file", "90.5 ± 0.3", ours, *["91.0"] * 4]
    assert {len(row) for row in rows} == {7}
