"""Phonemes that nets write, the weights of the package g2p-en, and error rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.papers.g2p_net import (
    END,
    PHONEMES,
    START,
    Floats,
    Pronunciation,
    encoder,
    letters_of,
    one_step,
)
from sparknet import Net, NetParams, WeightCollection

MOST_PHONEMES, CHUNK = 20, 500
"""Phonemes that are written at most; words that are decoded at a time."""


def packaged() -> WeightCollection:
    """Return g2p-en's weights as the layers' parameters: its gates are reset, update, candidate."""
    found = find_spec("g2p_en")
    if found is None or found.origin is None:
        raise SystemExit("the weights come with g2p-en: pip install --no-deps g2p-en")
    return converted(np.load(Path(found.origin).with_name("checkpoint20.npz")))


def converted(arrays: Mapping[str, Floats]) -> WeightCollection:
    def parameters(side: str) -> list[Floats]:
        inputs, states, bias, own = (
            gates_in_order(arrays[f"{side}_{name}"]) for name in ("w_ih", "w_hh", "b_ih", "b_hh")
        )
        candidate = 2 * len(own) // 3
        return [
            inputs,
            np.concatenate([(bias + own)[:candidate], bias[candidate:]]),
            states,
            own[candidate:],
        ]

    return WeightCollection.of_arrays(
        {
            "letter": [arrays["enc_emb"]],
            "reader": parameters("enc"),
            "phoneme": [arrays["dec_emb"]],
            "writer": parameters("dec"),
            "score": [arrays["fc_w"], arrays["fc_b"]],
        }
    )


def gates_in_order(rows: Floats) -> Floats:
    reset, update, candidate = np.split(rows, 3)
    return np.concatenate([update, reset, candidate])


def decode(
    weights: WeightCollection, entries: Sequence[str], starts_with_state: bool
) -> list[Pronunciation]:
    """Write each word's phonemes, each time the likeliest.

    The decoder of our net reads the encoder's last state first; g2p-en's begins in that state, and
    reads <s> first."""
    written: dict[str, Pronunciation] = {}
    ordered = sorted(entries, key=len)
    for begin in range(0, len(ordered), CHUNK):
        part = ordered[begin : begin + CHUNK]
        written.update(zip(part, decode_batch(weights, part, starts_with_state), strict=True))
    return [written[word] for word in entries]


def decode_batch(
    weights: WeightCollection, batch: Sequence[str], starts_with_state: bool
) -> list[Pronunciation]:
    rows, spelled = np.asarray(weights["phoneme"][0]), letters_of(batch)
    reader = net_with(weights, NetParams("reader", *encoder(*spelled["letters"].shape)))
    writer = net_with(weights, one_step(len(batch)))
    word = run(reader, spelled)["word"]
    start = np.repeat(rows[None, START : START + 1], len(batch), axis=1)
    values, state = (word, np.zeros_like(word)) if starts_with_state else (start, word)
    goes_on = np.ones((1, len(batch)), np.float32)
    steps = []
    for _ in range(MOST_PHONEMES):
        outputs = run(writer, {"input": values, "goes_on": goes_on, "state": state})
        steps.append(outputs["score"][0].argmax(axis=1))
        values, state = rows[steps[-1]][None], outputs["next"]
    ids = np.array([*steps, np.full(len(batch), END)]).T.tolist()
    return [tuple(PHONEMES[number] for number in row[: row.index(END)]) for row in ids]


def net_with(weights: WeightCollection, layers: NetParams) -> Net:
    made = Net(layers)
    made.set_weights(WeightCollection.of_arrays({n: weights[n] for n in made.get_weights()}))
    return made


def run(made: Net, values: Mapping[str, Floats]) -> dict[str, Floats]:
    for name, value in values.items():
        made.net.blobs[name].data[...] = value
    return {name: value.copy() for name, value in made.net.forward().items()}


@dataclass(frozen=True)
class Rates:
    """Shares of words, of words without stress, and of phonemes that are wrong."""

    words: float
    unstressed: float
    phonemes: float

    @classmethod
    def of(
        cls, written: Sequence[Pronunciation], right: Sequence[Sequence[Pronunciation]]
    ) -> Rates:
        """Compare with the nearest of each word's pronunciations."""
        pairs = [
            min((distance(ours, true), true) for true in truth)
            for ours, truth in zip(written, right, strict=True)
        ]
        plain = [
            without_stress(ours) not in map(without_stress, truth)
            for ours, truth in zip(written, right, strict=True)
        ]
        return cls(
            float(np.mean([errors > 0 for errors, _ in pairs])),
            float(np.mean(plain)),
            sum(errors for errors, _ in pairs) / sum(len(true) for _, true in pairs),
        )


def without_stress(pronunciation: Pronunciation) -> Pronunciation:
    return tuple(phoneme.rstrip("012") for phoneme in pronunciation)


def distance(one: Pronunciation, other: Pronunciation) -> int:
    """Return the least number of phonemes to insert, remove or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, left in enumerate(one, 1):
        before, row = row, [number]
        for at, right in enumerate(other):
            row.append(min(before[at + 1] + 1, row[at] + 1, before[at] + (left != right)))
    return row[-1]
