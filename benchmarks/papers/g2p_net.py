"""The net of g2p-en in the DSL: a GRU that reads letters, and a GRU that writes phonemes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss
from sparknet.dsl import GRU, Concat, Embed, Gather

Floats = NDArray[np.float32]
Pronunciation = tuple[str, ...]
UNITS = 256
LETTERS = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
VOWELS = ("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW")
PHONEMES = [
    *("<pad>", "<unk>", "<s>", "</s>"),
    *sorted(
        [
            *[vowel + stress for vowel in VOWELS for stress in "012"],
            *("UW", "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R"),
            *("S", "SH", "T", "TH", "V", "W", "Y", "Z", "ZH"),
        ]
    ),
]
"""Letters and phonemes are in the order of g2p-en's tables."""
START, END = PHONEMES.index("<s>"), PHONEMES.index("</s>")


def letters_of(batch: Sequence[str]) -> dict[str, Floats]:
    """Return ids of letters, padded in front, so that the last step sees the end of each word."""
    steps = max(map(len, batch)) + 1
    ids, more = np.zeros((2, steps, len(batch)), np.float32)
    for at, word in enumerate(batch):
        begin = steps - len(word) - 1
        ids[begin:, at] = [*map(LETTERS.index, word), LETTERS.index("</s>")]
        more[begin + 1 :, at] = 1
    return {"letters": ids, "more": more}


def phonemes_of(batch: Sequence[Pronunciation]) -> dict[str, Floats]:
    """Return the phonemes that the decoder reads, and the next ones, padded behind."""
    steps = max(map(len, batch)) + 1
    before = np.zeros((steps - 1, len(batch)), np.float32)
    label, goes_on = np.zeros((2, steps, len(batch)), np.float32)
    goes_on[1:] = 1
    for at, pronunciation in enumerate(batch):
        ids = [*map(PHONEMES.index, pronunciation)]
        before[: len(ids), at] = ids
        label[: len(ids) + 1, at] = [*ids, END]
    return {"before": before, "goes_on": goes_on, "label": label}


def encoder(steps: int, batch: int) -> list[Any]:
    return [
        RDDLayer("letters", shape=[steps, batch]),
        RDDLayer("more", shape=[steps, batch]),
        embed("letter", "letters", len(LETTERS)),
        gru("reader", ["letter", "more"]),
        Gather("word", "reader", axis=0, index=[-1]),
    ]


def embed(name: str, ids: str, rows: int) -> Any:
    filler = {"type": "gaussian", "std": 0.3}
    return Embed(name, ids, input_dim=rows, num_output=UNITS, bias_term=False, weight_filler=filler)


def gru(name: str, bottoms: Sequence[str], **options: Any) -> Any:
    return GRU(name, bottoms, num_output=UNITS, reset_after=True, weight_filler="xavier", **options)


def score(bottom: str) -> Any:
    return LinearLayer("score", bottom, num_outputs=len(PHONEMES), axis=2, weight_filler="xavier")


def net(steps: int, written: int, batch: int) -> NetParams:
    """Return the net that learns.  The decoder's first input is the encoder's last state."""
    return NetParams(
        "g2p",
        *encoder(steps, batch),
        RDDLayer("before", shape=[written - 1, batch]),
        RDDLayer("goes_on", shape=[written, batch]),
        RDDLayer("label", shape=[written, batch]),
        embed("phoneme", "before", len(PHONEMES)),
        Concat("inputs", ["word", "phoneme"], axis=0),
        gru("writer", ["inputs", "goes_on"]),
        score("writer"),
        SoftmaxWithLoss("loss", ["score", "label"], softmax_param={"axis": 2}, ignore_label=0),
    )


def one_step(batch: int) -> NetParams:
    """Return the decoder's one step, from its input and its state to scores and its next state."""
    return NetParams(
        "step",
        RDDLayer("input", shape=[1, batch, UNITS]),
        RDDLayer("goes_on", shape=[1, batch]),
        RDDLayer("state", shape=[1, batch, UNITS]),
        gru("writer", ["input", "goes_on", "state"], tops=["written", "next"], expose_hidden=True),
        score("written"),
    )
