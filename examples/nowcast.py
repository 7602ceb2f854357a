"""Forecast the next radar pictures from the last ones: sequence to sequence, by ConvLSTMs on Spark.

    python examples/nowcast.py [workers] [folder for pictures] [epochs]
    spark-submit examples/nowcast.py …

Rain moves, grows and fades over drawn radar pictures of 32 x 32.  An encoder reads five pictures,
one a step; a decoder goes on from its state and draws the next five (Shi et al. 2015, whose users
of BigDL forecast precipitation so: arXiv 1804.05839, section 5.2).  Both are ConvLSTMs.  What it
has to beat is persistence: that the last picture stays.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from sparknet import NetParams, RDDLayer, SolverParams
from sparknet.dsl import Concat, Convolution, Deconvolution, EuclideanLoss, Power, ReLU, Slice
from sparknet.models import conv_lstm
from sparknet.spark import Trainer, get_session
from sparknet.summary import Progress

SIDE, SEEN, AHEAD = 32, 5, 5
BATCH, UNITS, FILTERS, EPOCHS = 16, 24, 8, 8
FILMS = {"learned": 1600, "held out": 200}


def film(random: np.random.Generator) -> Any:
    """Ten pictures of a few blobs of rain, from 0 (dry) to 255."""
    y, x = np.mgrid[:SIDE, :SIDE]
    pictures = np.zeros((SEEN + AHEAD, SIDE, SIDE))
    for _ in range(random.integers(2, 5)):
        place, speed = random.uniform(4, SIDE - 4, 2), random.uniform(-1.6, 1.6, 2)
        size, growth = random.uniform(2, 4.5), random.uniform(-0.15, 0.25)
        rain, fading = random.uniform(90, 220), random.uniform(0.86, 1.04)
        for step, picture in enumerate(pictures):
            across, down = place + step * speed
            width = max(size + step * growth, 1)
            distance = ((x - across) ** 2 + (y - down) ** 2) / (2 * width**2)
            picture += rain * fading**step * np.exp(-distance)
    return pictures.clip(0, 255).astype(np.uint8)


def forecaster() -> NetParams:
    """An encoder over the pictures that were seen, and a decoder that draws those to come."""
    films = [
        RDDLayer(name, [BATCH, count, SIDE, SIDE])
        for name, count in (("seen", SEEN), ("next", AHEAD))
    ]
    scaled = [Power(f"{name}_scaled", name, scale=1 / 255) for name in ("seen", "next")]
    frames = [f"frame{step}" for step in range(SEEN)]
    layers: list[Any] = [*films, *scaled, Slice("frames", "seen_scaled", tops=frames)]
    half: dict[str, Any] = {"kernel_size": 4, "stride": 2, "pad": 1}
    state = None
    for step, frame in enumerate(frames):
        look = f"look{step}"
        layers += [
            Convolution(
                look,
                frame,
                num_output=FILTERS,
                weight_filler="msra",
                param=["look", "look_bias"],
                **half,
            ),
            ReLU(f"relu{step}", look, in_place=True),
        ]
        made, state = conv_lstm("encoder", step, look, state, units=UNITS)
        layers += made
    drawn = [f"drawn{step}" for step in range(AHEAD)]
    for step, picture in enumerate(drawn):
        made, state = conv_lstm("decoder", step, None, state, units=UNITS)
        drawing = Deconvolution(
            picture,
            state.hidden,
            num_output=1,
            weight_filler="xavier",
            param=["draw", "draw_bias"],
            **half,
        )
        layers += [*made, drawing]
    return NetParams(
        "nowcast",
        layers,
        Concat("forecast", drawn),
        EuclideanLoss("loss", ["forecast", "next_scaled"]),
    )


def main(workers: int = 2, folder: str | None = None, epochs: int = EPOCHS) -> float:
    spark = get_session(workers)
    films = [film(np.random.default_rng(number)) for number in range(sum(FILMS.values()))]
    rows = [
        (number, one[:SEEN].tobytes(), one[SEEN:].tobytes()) for number, one in enumerate(films)
    ]
    table = spark.createDataFrame(rows, "id long, seen binary, next binary").repartition(4).cache()
    learned, held = (
        table.where(f"id < {FILMS['learned']}"),
        table.where(f"id >= {FILMS['learned']}"),
    )
    solver = SolverParams(
        net=forecaster(),
        base_lr=0.003,
        type="Adam",
        momentum=0.9,
        lr_policy="poly",
        power=1,
        max_iter=epochs * FILMS["learned"] // (BATCH * workers),
        random_seed=1,
    )
    trainer = Trainer(solver, "allreduce", workers, validate_every=100, on_event=Progress())
    trained = trainer.fit(learned, held)
    told = trained.model.transform(held, ["forecast"]).orderBy("id").collect()
    true = np.stack(films[FILMS["learned"] :]) / 255
    seen, future = true[:, :SEEN], true[:, SEEN:]
    forecast = np.reshape([row.forecast for row in told], future.shape)
    ours = ((forecast - future) ** 2).mean((0, 2, 3))
    stays = ((seen[:, -1:] - future) ** 2).mean((0, 2, 3))
    print("mean squared error, by steps ahead")
    for step in range(AHEAD):
        print(f"{step + 1}: persistence {stays[step]:.5f}, ConvLSTM {ours[step]:.5f}")
    gain = 1 - float(ours.mean() / stays.mean())
    print(f"error below that of persistence by {gain:.1%}")
    if folder is not None:
        import gallery

        gallery.films(Path(folder, "nowcast.png"), seen[:2], future[:2], forecast[:2])
    spark.stop()
    return gain


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 2, words[1] if words[1:] else None, *map(int, words[2:]))
