"""Params of the stages: tables of names and texts, from which setters and getters are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters

from sparknet import renamed
from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.net.description import solver_of
from sparknet.net.portable import portable_solver
from sparknet.predict.stage import INVALID
from sparknet.proto import format_text, parse_solver
from sparknet.proto.suggest import did_you_mean
from sparknet.training.settings import fields as training
from sparknet.training.settings.kinds import Choice, Kind, Name, Names, Number, Ports, Switch, Whole

Stage = TypeVar("Stage", bound="StageParams")

FLOAT, INT, FLAG = TypeConverters.toFloat, TypeConverters.toInt, TypeConverters.toBoolean


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is needed")
    return value


class OwnText(str):
    """A solver's text or path that this program set; the grid of a saved stage has a plain str."""

    __slots__ = ()


def solver_text(value: Any) -> Any:
    """Return a solver as text, which a saved grid can hold; one with files beside it as it is."""
    if isinstance(value, (str, Path, Net)) or (settings := solver_of(value)) is None:
        return value
    whole = portable_solver(settings)
    return value if whole.files else OwnText(with_weights(whole.text, settings))


def with_weights(text: str, settings: Any) -> str:
    """Return a solver's text with the files of weights that its settings name."""
    message = parse_solver(text)
    message.weights.extend(settings.weights)
    return format_text(message)


def texts(value: Any) -> list[str]:
    """Return a list of names."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise TypeError("a list of names is needed")
    return list(value)


def count(value: Any) -> int:
    """Return a number of things."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise TypeError("a whole number, at least 1, is needed")
    return int(value)


def mapping(value: Any) -> dict[str, str]:
    """Return a dict of names."""
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise TypeError("a dict of blobs' names and columns' is needed")
    return {str(name): column for name, column in value.items()}


def invalid(value: Any) -> str:
    """Return one of pyspark.ml's words, or `SparkModel.transform`'s in its place."""
    words: dict[str, str] = {own: word for word, own in INVALID.items()}
    word = words.get(value, value) if isinstance(value, str) else value
    if word not in INVALID:
        raise TypeError(f"it is one of {', '.join(INVALID)}")
    return str(word)


@dataclass(frozen=True)
class ParamSetting:
    """A Param, under the name that pyspark.ml gives such a thing, and its other names."""

    said: str
    convert: Callable[[Any], Any] | None = None
    others: tuple[str, ...] = ()

    def names(self, name: str) -> list[str]:
        """Return all names: ``clip_gradients`` is called clipGradients as well."""
        spellings = [name, *self.others]
        return list(
            dict.fromkeys([*spellings, *(one[:1] + capitalised(one)[1:] for one in spellings)])
        )


_CONVERTERS: dict[type[Kind], Callable[[Any], Any]] = {
    Whole: INT,
    Number: FLOAT,
    Switch: FLAG,
    Name: text,
    Choice: text,
    Names: texts,
    Ports: list,
}


def of_training(
    told: training.Setting,
    others: tuple[str, ...] = (),
    convert: Callable[[Any], Any] | None = None,
) -> ParamSetting:
    """Return the Param of a setting of training, which refuses what the setting refuses."""
    converter = convert or _CONVERTERS.get(type(told.kind), TypeConverters.identity)
    return ParamSetting(told.said.rstrip("."), partial(_checked, told, converter), others)


def _checked(told: training.Setting, convert: Callable[[Any], Any], value: Any) -> Any:
    converted = convert(value)
    if fault := told.fault(converted):
        raise TypeError(f"it {fault}")
    return converted


class StageParams(Params):  # type: ignore[misc]
    """Params that are set by keyword, by setter (``setMaxIter``) or by a parameter grid."""

    settings: ClassVar[Mapping[str, ParamSetting]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}
    """Old names of Params, which work for a version."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the Params, setters and getters of a class that has its own ``settings``."""
        super().__init_subclass__(**options)
        for name, setting in vars(cls).get("settings", {}).items():
            param = Param(Params._dummy(), name, setting.said, setting.convert)
            setattr(cls, name, param)
            for spelling in setting.names(name):
                if spelling != name:
                    setattr(cls, spelling, _alias(name))
                for verb, make in (("set", _setter), ("get", _getter)):
                    if not hasattr(cls, verb + capitalised(spelling)):
                        setattr(cls, verb + capitalised(spelling), make(name))
        for old, name in vars(cls).get("renamed", {}).items():
            setattr(cls, old, _alias(name))
            for verb in ("set", "get"):
                earlier = verb + capitalised(old)
                if not hasattr(cls, earlier):
                    setattr(cls, earlier, _earlier(earlier, verb + capitalised(name)))

    def setParams(self: Stage, **given: Any) -> Stage:  # noqa: N802
        """Set Params by keyword; None leaves a Param as it is."""
        names = self._names()
        for keyword, value in renamed.new_names(given, self.renamed, 3).items():
            if keyword not in names:
                raise SparkError(
                    f"{type(self).__name__} has no keyword '{keyword}'"
                    f"{did_you_mean(keyword, names) or ': it takes ' + ', '.join(names)}"
                )
            if value is not None:
                self._put(names[keyword], value)
        return self

    def _put(self, name: str, value: Any) -> None:
        try:
            self.set(self.getParam(name), value)
        except (TypeError, ValueError) as error:
            raise SparkError(f"{name} is {brief(value)}: {error}") from error

    def value_of(self, name: str, otherwise: Any = None) -> Any:
        """Return the value of a Param that is set or has a default."""
        param = self.getParam(name)
        return self.getOrDefault(param) if self.isDefined(param) else otherwise

    def invalid(self) -> Any:
        """`handleInvalid` in the words of `SparkModel.transform`."""
        return INVALID[self.value_of("handleInvalid", "error")]

    def hand_over(self, to: StageParams) -> None:
        """Give another stage the values of the Params that it has, too."""
        for name in self.settings.keys() & to.settings.keys():
            mine, theirs = self.getParam(name), to.getParam(name)
            if self.hasDefault(mine):
                to._setDefault(**{name: self._defaultParamMap[mine]})
            if self.isSet(mine):
                to.set(theirs, self._paramMap[mine])

    @classmethod
    def _names(cls) -> dict[str, str]:
        """Keyword → Param."""
        return {
            keyword: name
            for name, setting in cls.settings.items()
            for keyword in setting.names(name)
        }


def _alias(name: str) -> property:
    """Return the Param under another name; a property, so that it is not explained twice."""
    return property(lambda self: self.getParam(name))


def _setter(name: str) -> Callable[..., Any]:
    def setter(self: StageParams, value: Any) -> StageParams:
        self._put(name, value)
        return self

    setter.__doc__ = f"Set `{name}`."
    return setter


def _getter(name: str) -> Callable[..., Any]:
    def getter(self: StageParams) -> Any:
        return self.value_of(name)

    getter.__doc__ = f"The value of `{name}`; None if it has none."
    return getter


def _earlier(old: str, new: str) -> Callable[..., Any]:
    def call(self: StageParams, *given: Any) -> Any:
        renamed.warn(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)(*given)

    call.__doc__ = f"The earlier name of `{new}`."
    return call


def capitalised(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"a {type(value).__name__}"


_LONGEST = 60


COLUMNS = {
    "featuresCol": ParamSetting("the column of the net's first input", text),
    "labelCol": ParamSetting("the column with the target of the first loss", text),
    "predictionCol": ParamSetting(
        "the column for the predicted class (or number, or labels), a double", text, ("best",)
    ),
    "probabilityCol": ParamSetting("the column for the vector of the classes' probabilities", text),
    "rawPredictionCol": ParamSetting("the column for the vector of the classes' scores", text),
    "columns": ParamSetting("blob → column, for nets with several inputs", mapping),
}
OUTPUT = {
    "outputs": ParamSetting("blobs that become columns; the net's predictions unless set", texts),
    "prefix": ParamSetting("the prefix of the blobs' columns", text),
    "batch": ParamSetting("how many rows go through the net at a time", count),
    "handleInvalid": ParamSetting(
        "what becomes of rows that cannot be read: error, keep (with nulls) or skip", invalid
    ),
}
