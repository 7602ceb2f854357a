"""sparknet/spark/pipeline/typed.pyi: the Params of the stages, with setters and getters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import Parameter, signature
from typing import Any

from sparknet.loaders.preprocessing import Preprocessing
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer, NetModel, SequenceEncoder
from sparknet.spark.pipeline.params import (
    FLAG,
    FLOAT,
    INT,
    StageParams,
    capitalised,
    count,
    invalid,
    mapping,
    text,
    texts,
)
from sparknet.spark.predict.model import SparkModel

PATH = "spark/pipeline/typed.pyi"

HEAD = """# Written by python -m stubs from the stages' Params.

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from pyspark.ml.param import Param
from typing_extensions import Self

from sparknet.loaders.preprocessing import ImageSettings
"""

_TYPES: dict[Callable[[Any], Any] | None, str] = {
    FLOAT: "float",
    INT: "int",
    FLAG: "bool",
    text: "str",
    texts: "Sequence[str]",
    count: "int",
    mapping: "Mapping[str, str]",
    invalid: 'Literal["error", "keep", "skip"]',
}


def stub() -> str:
    lines = [HEAD]
    for stage in (NetEstimator, NetFeaturizer, NetModel, SequenceEncoder):
        lines += [*_keywords(stage), "", *_methods(stage), ""]
    return "\n".join(lines)


def _keywords(stage: type[StageParams]) -> Iterator[str]:
    of_model = stage is NetFeaturizer  # it passes on what SparkModel takes
    base = "ImageSettings" if of_model else "TypedDict"
    yield f"class {stage.__name__}Params({base}, total=False):"
    own = signature(stage.__init__).parameters
    for name, setting in stage.settings.items():
        for known in setting.names(name):
            if known not in own:
                yield f"    {known}: {_type(setting.convert)} | None"
    if of_model:
        known_already = stage.settings.keys() | Preprocessing.__dataclass_fields__.keys()
        for name, parameter in signature(SparkModel).parameters.items():
            if parameter.kind is Parameter.KEYWORD_ONLY and name not in known_already:
                yield f"    {name}: object"


def _methods(stage: type[StageParams]) -> Iterator[str]:
    """The Params, for grids, and what sets and gets them."""
    yield f"class {stage.__name__}Methods:"
    for name, setting in stage.settings.items():
        kind = _type(setting.convert)
        words = setting.names(name)
        yield from (f"    {known}: Param[Any]" for known in words)
        for known in dict.fromkeys(map(capitalised, words)):
            yield f"    def set{known}(self, value: {kind}) -> Self: ..."
            yield f"    def get{known}(self) -> {kind}: ..."


def _type(convert: Callable[[Any], Any] | None) -> str:
    """The type of a Param, whose converter may check a setting of training first."""
    inner = convert.args[1] if isinstance(convert, partial) else convert
    return _TYPES.get(inner, "Any" if inner is None else "object")
