"""Flags that say what happens to images: the settings of `Preprocessing`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.net.model_inputs import ModelInputs

NAMES = (
    *("resize", "resize_mode", "pad", "interpolation", "crop", "color", "upright", "exact"),
    *("mean_file", "mean_value", "scale", "std", "mirror"),
)


def add(parser: ArgumentParser, training: bool = False) -> None:
    title = "What happens to each image, in this order (docs/images.md)."
    group = parser.add_argument_group("images", title)
    channels, side = "B[,G,R]", "of this size; one number means a square"
    crop = "a random crop" if training else "the centre crop"

    def option(flag: str, metavar: str, help: str, type: Callable[[str], Any] = str) -> None:
        group.add_argument(flag, metavar=metavar, help=help, type=type)

    def switch(flag: str, help: str) -> None:
        group.add_argument(flag, action="store_true", default=None, help=help)

    option("--resize", "HEIGHTxWIDTH", "resize to this size; one number means a square", flags.size)
    option(
        "--resize-mode",
        "MODE",
        "exact: stretch the image (default); shorter: scale it to cover the size, and cut off "
        "the rest; fit: scale it to fit, and pad the rest",
    )
    option("--pad", channels, "the value to pad with", numbers)
    option("--interpolation", "NAME", "how to interpolate, such as cv2.linear or pil.bicubic")
    option("--crop", "SIZE", f"take {crop} {side}", flags.size)
    option("--color", "ORDER", "the order of the channels: bgr, rgb or grey")
    switch("--upright", "rotate photos by the orientation in their EXIF data")
    switch("--exact", "decode JPEGs in full, though a smaller size is enough")
    option("--mean-file", "FILE", "subtract this mean image, a .binaryproto or .npy")
    option("--mean-value", channels, "subtract this mean, one value or one per channel", numbers)
    option("--scale", "SCALE", "multiply by this after subtracting the mean", float)
    option("--std", channels, "divide by this at the end, one value or one per channel", numbers)
    if training:
        switch("--mirror", "mirror half of the images, at random")


def numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"'{text}' is not a list of numbers, such as 104,117,123") from None


def keywords(chosen: Namespace) -> dict[str, Any]:
    """Return what the file beside the net says, changed by the flags that are given."""
    return {**_beside(chosen), **flags_given(chosen)}


def flags_given(chosen: Namespace) -> dict[str, Any]:
    """Return the flags that are given, by the names of `Preprocessing`."""
    flags = {name: getattr(chosen, name, None) for name in NAMES}
    flags = {name: value for name, value in flags.items() if value is not None}
    if "mean_file" in flags and "mean_value" in flags:
        raise WrongUse("give --mean-file or --mean-value, not both")
    for flag in ("mean_file", "mean_value"):
        if flag in flags:
            flags["mean"] = flags.pop(flag)
    return flags


def _beside(chosen: Namespace) -> dict[str, Any]:
    """Return the settings that the file of the net or of its weights has."""
    from sparknet.proto import read_solver

    net = getattr(chosen, "model", None)
    if not net and getattr(chosen, "solver", None):
        solver = read_solver(chosen.solver)
        net = solver.net or solver.train_net
        return settings_beside(net) if net else {}
    return next(filter(None, map(settings_beside, _files(chosen))), {})


def _files(chosen: Namespace) -> list[str]:
    files = (getattr(chosen, "model", None), getattr(chosen, "weights", None))
    return [file for file in files if file]


def beside(chosen: Namespace) -> ModelInputs | None:
    """Return what x.sparknet.json says of -model, or of -weights."""
    from sparknet.net.model_inputs import ModelInputs

    return next(filter(None, map(ModelInputs.beside, _files(chosen))), None)


@cache
def settings_beside(net: str) -> dict[str, Any]:
    """Return the settings in a net's file, of which a line tells; none where there is no file."""
    from sparknet.net.model_inputs import ModelInputs

    inputs = ModelInputs.beside(net)
    if inputs is None or inputs.preprocessing is None:
        return {}
    settings = inputs.preprocessing.settings()
    text = ", ".join(f"{name} {_short(value)}" for name, value in settings.items())
    file = ModelInputs.place(net)
    print(f"sparknet: images as {file} says: {text or 'as they are'}", file=sys.stderr)
    return settings


def _short(value: Any) -> str:
    if hasattr(value, "shape"):
        return " x ".join(map(str, value.shape))
    values = value if isinstance(value, tuple) else (value,)
    return ",".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)


def preprocessing(chosen: Namespace) -> Preprocessing | None:
    from sparknet.loaders.preprocessing import Preprocessing

    return Preprocessing.of(keywords(chosen))
