"""Letters from the scores of steps in time, as cv2.dnn's TextRecognitionModel reads them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from sparknet.proto.blob_file import Array

Prefix = tuple[int, ...]
Beam = dict[Prefix, list[float]]


def greedy(scores: Array) -> list[int]:
    """Return each step's best letter, without repetitions and blanks (letter 0)."""
    best = [int(letter) for letter in scores.argmax(axis=1)]
    pairs = zip([0, *best], best, strict=False)
    return [letter for before, letter in pairs if letter and letter != before]


def beam_search(scores: Array, beam_size: int, prune: int) -> list[int]:
    """Return the likeliest letters; scores are logarithms, and a step's best ``prune`` count."""
    beam: Beam = {(): [0.0, -np.inf]}  # of a prefix: ending in a blank, and in a letter
    for step in scores:
        tokens = np.argsort(-step, kind="stable")[: prune or None]
        longer: Beam = defaultdict(lambda: [-np.inf, -np.inf])
        for token in map(int, tokens):
            score = float(step[token])
            for prefix, (blank, letter) in beam.items():
                extended = (*prefix, token)
                either = np.logaddexp(blank, letter) + score
                if token == 0:
                    _add(longer[prefix], 0, either)
                elif prefix and token == prefix[-1]:
                    _add(longer[extended], 1, blank + score)
                    _add(longer[prefix], 1, letter + score)
                else:
                    _add(longer[extended], 1, either)
        ranked = sorted(longer.items(), key=lambda item: -np.logaddexp(item[1][0], item[1][1]))
        beam = dict(ranked[:beam_size])
    return list(next(iter(beam)))


def _add(entry: list[float], place: int, score: float) -> None:
    entry[place] = float(np.logaddexp(entry[place], score))
