"""Tell the language of a text by its letters: strings to ids to convolutions, on Spark.

    pip install django
    python examples/languages.py [workers] [folder for pictures] [epochs] [seeds]
    spark-submit examples/languages.py …

The texts are what Django's interface says in sixteen languages that share one alphabet: buttons,
questions and errors; each seed is another split.  SequenceEncoder makes a column of ids of their
letters (and one of continuation markers, which an LSTM would read), a convolutional net reads it
(Kim 2014), and its class is a column.  What it has to beat is a linear classifier of runs of one to
four letters; most words of a new text are new, so that one of whole words is far behind.
"""

from __future__ import annotations

import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trials import against, head, row

from sparknet import Dropout, LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Accuracy, Concat, Convolution, Embed, Pooling, ReLU, Reshape
from sparknet.report import Progress
from sparknet.spark import get_session
from sparknet.spark.pipeline import NetEstimator, SequenceEncoder

LANGUAGES = "ca cs da de es fr gl it nb nl pl pt ro sk sl sv".split()  # noqa: SIM905
LENGTH, BATCH, WIDTHS, EPOCHS = 48, 32, (2, 3, 4, 5), 12
NO_WORDS = r"%\(\w+\)\w|%\w|\{[^}]*\}|<[^>]*>|&\w+;|\\.|\d+"
"""Placeholders and tags, which say nothing about the language."""


def texts(folder: Path) -> list[tuple[str, int]]:
    """What Django says in one language only, and the language's number."""
    found: dict[str, set[int]] = defaultdict(set)
    for number, language in enumerate(LANGUAGES):
        for file in sorted(folder.rglob(f"locale/{language}/LC_MESSAGES/django.po")):
            for text in messages(file.read_text(encoding="utf-8")):
                words = " ".join(re.sub(NO_WORDS, " ", text).split())
                if len(words) > 3:
                    found[words].add(number)
    return [(text, numbers.pop()) for text, numbers in found.items() if len(numbers) == 1]


def messages(catalogue: str) -> Iterator[str]:
    """The translations in a file of gettext, without those that nobody has confirmed."""
    for entry in catalogue.split("\n\n"):
        lines = re.search(r'msgstr(?:\[0\])? ((?:".*"\n?)+)', entry)
        if lines and "#, fuzzy" not in entry and 'msgid ""\nmsgstr' not in entry:
            yield "".join(re.findall(r'"(.*)"', lines[1]))


def reader(letters: int) -> NetParams:
    """Convolutions over two to five letters at a time; each filter's largest value counts."""
    filters: list[Any] = []
    for wide in WIDTHS:
        conv, largest = f"conv{wide}", f"largest{wide}"
        filters += [
            Convolution(
                conv, "rows", num_output=96, kernel_h=wide, kernel_w=32, weight_filler="xavier"
            ),
            ReLU(f"relu{wide}", conv, in_place=True),
            Pooling(largest, conv, pool="MAX", global_pooling=True),
        ]
    return NetParams(
        "languages",
        RDDLayer("ids", shape=[BATCH, LENGTH]),
        RDDLayer("label", shape=[BATCH]),
        Embed("letters", "ids", input_dim=letters, num_output=32, weight_filler="xavier"),
        Reshape("rows", "letters", shape=[0, 1, LENGTH, 32]),
        filters,
        Concat("found", [f"largest{wide}" for wide in WIDTHS]),
        Dropout("dropped", "found", dropout_ratio=0.5),
        LinearLayer("score", "dropped", num_outputs=len(LANGUAGES), weight_filler="xavier"),
        Accuracy("accuracy", ["score", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["score", "label"]),
    )


def plain(learned: list[tuple[str, int]], held: list[tuple[str, int]]) -> dict[str, float]:
    """Accuracies of linear classifiers of words and of runs of letters.

    Runs of up to four letters with C = 0.3 were the best on an eighth of one split's texts to learn
    from, of runs with and without borders of words, up to four or five, of three values of C, and
    of naive Bayes.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    ways = {
        "words, logistic regression": (CountVectorizer(), LogisticRegression(max_iter=1000)),
        "runs of letters, linear SVM": (letters, LinearSVC(C=0.3)),
    }
    (texts, labels), (new, true) = (zip(*part, strict=True) for part in (learned, held))
    return {
        name: float(make_pipeline(*steps).fit(texts, labels).score(new, true))
        for name, steps in ways.items()
    }


def main(
    workers: int = 2, folder: str | None = None, epochs: int = EPOCHS, seeds: int = 1
) -> float:
    import django

    spark = get_session(workers)
    rows = sorted(texts(Path(django.__file__).parent))
    ways: dict[str, list[float]] = {}
    for seed in range(1, seeds + 1):
        random.Random(seed).shuffle(rows)
        split = len(rows) * 4 // 5
        learned, held = (
            spark.createDataFrame(part, "text string, label int").repartition(4).cache()
            for part in (rows[:split], rows[split:])
        )
        letters = SequenceEncoder.build_vocabulary(learned, "text", split="", least=3)
        encoder = SequenceEncoder(letters, LENGTH, inputCol="text", outputCol="ids", split="")
        solver = SolverParams(
            net=reader(encoder.size),
            base_lr=0.002,
            type="Adam",
            momentum=0.9,
            lr_policy="poly",
            power=1,
            max_iter=epochs * split // (BATCH * workers),
            random_seed=seed,
        )
        learner = NetEstimator(
            solver,
            strategy="allreduce",
            workers=workers,
            featuresCol="ids",
            labelCol="label",
            seed=seed,
            on_event=Progress(),
        )
        model = learner.fit(encoder.transform(learned))
        predicted = model.transform(encoder.transform(held)).cache()
        accuracy = predicted.where("prediction = label").count() / predicted.count()
        found = plain(rows[:split], rows[split:])
        for name, one in (*found.items(), (f"convolutions, workers: {workers}", accuracy)):
            ways.setdefault(name, []).append(one)
    predicted.select("text", "label", "prediction").show(8, truncate=40)
    head("accuracy")
    for name, accuracies in ways.items():
        (mean,) = row(name, accuracies)
    *_, letters_alone, ours = ways.values()
    against(letters_alone, ours)
    print(f"accuracy {mean:.1%} of {len(rows) - split} texts in {len(LANGUAGES)} languages")
    if folder is not None:
        import gallery

        pairs = predicted.groupBy("label", "prediction").count().collect()
        gallery.confused(Path(folder, "languages.png"), pairs, LANGUAGES)
    spark.stop()
    return mean


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 2, words[1] if words[1:] else None, *map(int, words[2:]))
