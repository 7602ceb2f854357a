"""What SSD's layers over predicted boxes have in common: how the predictions must fit."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Shape, shape_text
from sparknet.layers.layer import count as values_in
from sparknet.layers.legacy_shape import legacy_shape


def check_predictions(
    layer: Layer, bottoms: Sequence[Shape], classes: int, shared: bool, first_stage: int = 0
) -> int:
    """The number of priors; bottoms 0 to 2 are locations, confidences and priors.

    The last ``first_stage`` bottoms are RefineDet's: scores of background and object, locations.
    """
    locations, confidences, priors = (
        legacy_shape(layer, shape, what)
        for shape, what in zip(bottoms, ("locations", "confidences", "priors"), strict=False)
    )
    if locations[0] != confidences[0]:
        layer.fail(
            f"locations and confidences must have the same number of images; "
            f"they are {locations[0]} and {confidences[0]}"
        )
    count = priors[2] // 4
    if not count or priors[2] % 4 or values_in(bottoms[2]) < 8 * count:
        layer.fail(
            "priors are rows of corners and of variances, 1 x 2 x 4 times their number; "
            f"the shape is {shape_text(bottoms[2])}"
        )
    _check_first_stage(layer, bottoms[len(bottoms) - first_stage :], locations[0], count)
    for name, found, expected in (
        ("locations", locations[1], count * 4 * (1 if shared else classes)),
        ("confidences", confidences[1], count * classes),
    ):
        if found != expected:
            layer.fail(
                f"{count} priors need {expected} {name} for each image; there are {found} "
                '(dialect="textboxes" and "faceboxes" lay other priors)'
            )
    for name, shape in (("locations", locations), ("confidences", confidences)):
        if shape[2:] != (1, 1):
            layer.fail(f"{name} must be one row for each image; their shape is {shape_text(shape)}")
    return count


def _check_first_stage(layer: Layer, bottoms: Sequence[Shape], images: int, priors: int) -> None:
    for (name, each), shape in zip((("scores", 2), ("locations", 4)), bottoms, strict=False):
        if values_in(shape) != images * priors * each:
            layer.fail(
                f"{images} images of {priors} priors need {images * priors * each} {name} of the "
                f"first stage; their shape is {shape_text(shape)}"
            )
