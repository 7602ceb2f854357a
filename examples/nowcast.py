"""Forecast the next radar pictures from the last ones: sequence to sequence, by ConvLSTMs on Spark.

    python examples/nowcast.py [workers] [folder for pictures] [epochs] [seeds]
    spark-submit examples/nowcast.py …

Rain moves, grows and fades over drawn radar pictures of 32 x 32.  An encoder reads five pictures,
one a step; a decoder goes on from its state and draws the next five (Shi et al. 2015, whose users
of BigDL forecast precipitation so: arXiv 1804.05839, section 5.2).  Both are ConvLSTMs.  A linear
regression on the pixels around each pixel, in all five pictures, is hard to beat here, and is
itself a convolution: the net begins as that regression, and learns what is missing from it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from trials import against, head, row

from sparknet import NetParams, RDDLayer, SolverParams, WeightCollection
from sparknet.dsl import (
    Concat,
    Convolution,
    Deconvolution,
    Eltwise,
    EuclideanLoss,
    Power,
    ReLU,
    Slice,
)
from sparknet.models import conv_lstm
from sparknet.net import Net
from sparknet.report import Progress
from sparknet.spark import Trainer, get_session

SIDE, SEEN, AHEAD, AROUND = 32, 5, 5, 11
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


def regression(seen: Any, future: Any) -> tuple[Any, Any]:
    """The weights and biases of the linear regression of each pixel to come on those around it,
    in the shape of a convolution's.  A quarter of the rows of pixels is enough to learn from.
    """
    edge, size = AROUND // 2, SEEN * AROUND**2
    products, sums = np.eye(size + 1) * 0.1, np.zeros((size + 1, AHEAD))
    for number, (film, to_come) in enumerate(zip(seen, future, strict=True)):
        wide = np.pad(film, ((0, 0), (edge, edge), (edge, edge)))
        window = np.lib.stride_tricks.sliding_window_view(wide, (AROUND, AROUND), (1, 2))
        lines = slice(number % 4, None, 4)
        pixels = window[:, lines].transpose(1, 2, 0, 3, 4).reshape(-1, size)
        pixels = np.hstack([pixels, np.ones((len(pixels), 1))]).astype(np.float32)
        products += pixels.T @ pixels
        sums += pixels.T @ to_come[:, lines].transpose(1, 2, 0).reshape(-1, AHEAD)
    weights = np.linalg.solve(products, sums)
    return weights[:-1].T.reshape(AHEAD, SEEN, AROUND, AROUND), weights[-1]


def forecaster() -> NetParams:
    """An encoder over the pictures that were seen, a decoder that draws those to come, and the
    linear forecast beside them.
    """
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
            weight_filler={"type": "gaussian", "std": 0.01},
            param=["draw", "draw_bias"],
            **half,
        )
        layers += [*made, drawing]
    return NetParams(
        "nowcast",
        layers,
        Concat("missing", drawn),
        Convolution(
            "linear",
            "seen_scaled",
            num_output=AHEAD,
            kernel_size=AROUND,
            pad=AROUND // 2,
            weight_filler="xavier",
            lr_mult=[0.05, 0.05],
        ),
        Eltwise("forecast", ["missing", "linear"]),
        EuclideanLoss("loss", ["forecast", "next_scaled"]),
    )


def straight_on(seen: Any, weights: Any, biases: Any) -> Any:
    """The regression's forecasts."""
    edge = AROUND // 2
    wide = np.pad(seen, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    window = np.lib.stride_tricks.sliding_window_view(wide, (AROUND, AROUND), (2, 3))
    forecasts = [np.tensordot(weights, film, ([1, 2, 3], [0, 3, 4])) for film in window]
    return np.stack(forecasts) + biases[:, np.newaxis, np.newaxis]


def begun(weights: Any, biases: Any) -> WeightCollection:
    """The net's weights before it learns: its linear part is the regression."""
    drawn = Net(forecaster()).get_weights()
    drawn["linear"][0][...], drawn["linear"][1][...] = weights, biases
    return drawn


def main(
    workers: int = 2, folder: str | None = None, epochs: int = EPOCHS, seeds: int = 1
) -> float:
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
    values = np.stack(films).astype(np.float32) / 255
    seen, future = values[FILMS["learned"] :, :SEEN], values[FILMS["learned"] :, SEEN:]

    def errors(forecast: Any) -> list[float]:
        squared = (np.clip(forecast, 0, 1) - future) ** 2
        return [*squared.mean((0, 2, 3)) * 1e5, squared.mean() * 1e5]

    weights, biases = regression(*np.split(values[: FILMS["learned"]], [SEEN], 1))
    nets = []
    for seed in range(1, seeds + 1):
        solver = SolverParams(
            net=forecaster(),
            base_lr=0.003,
            type="Adam",
            momentum=0.9,
            lr_policy="poly",
            power=1,
            max_iter=epochs * FILMS["learned"] // (BATCH * workers),
            random_seed=seed,
        )
        trainer = Trainer(
            solver,
            "allreduce",
            workers,
            validate_every=100,
            weights=begun(weights, biases),
            seed=seed,
            on_event=Progress(),
        )
        trained = trainer.fit(learned, held)
        told = trained.model.transform(held, ["forecast"]).orderBy("id").collect()
        forecast = np.reshape([line.forecast for line in told], future.shape)
        nets.append(errors(forecast))
    print("mean squared error x 100,000, by pictures ahead")
    head(*map(str, range(1, AHEAD + 1)), "all")
    row("persistence: the last stays", [errors(np.repeat(seen[:, -1:], AHEAD, 1))], ".1f")
    straight = row("linear regression", [errors(straight_on(seen, weights, biases))], ".1f")[-1]
    ours = row("ConvLSTM", nets, ".1f")[-1]
    against([straight] * seeds, [each[-1] for each in nets], scale=1)
    gain = 1 - ours / straight
    print(f"error below that of linear regression by {gain:.1%}")
    if folder is not None:
        import gallery

        gallery.films(Path(folder, "nowcast.png"), seen[:2], future[:2], forecast[:2])
    spark.stop()
    return gain


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 2, words[1] if words[1:] else None, *map(int, words[2:]))
