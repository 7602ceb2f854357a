"""NetEstimator: a stage that trains a net."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.ml import Estimator

from sparknet import renamed
from sparknet.errors import SparkError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.description import NetSource, solver_of
from sparknet.net.model_folder import as_json, distrust_solver, of_json, unpacked
from sparknet.net.portable import portable_solver
from sparknet.net.recipe import Recipe, tuned
from sparknet.proto import parse_solver
from sparknet.spark.pipeline.model import NetModel
from sparknet.spark.pipeline.params import (
    COLUMNS,
    FLOAT,
    INT,
    OUTPUT,
    OwnText,
    ParamSetting,
    StageParams,
    count,
    invalid,
    of_training,
    solver_text,
    text,
    with_weights,
)
from sparknet.spark.pipeline.persistence import SavedStage
from sparknet.spark.predict.model import SparkModel
from sparknet.spark.train.opening import weights_of
from sparknet.spark.train.result import TrainingSummary
from sparknet.spark.train.trainer import Trainer
from sparknet.torch.modules.calling import arguments
from sparknet.torch.modules.saved_module import ROLES, made_module, read_learning, write_learning
from sparknet.training.events import OnEvent
from sparknet.training.settings.fields import settings_of, values_of
from sparknet.training.settings.module import ModuleKeywords
from sparknet.training.strategies import Strategy, make_strategy
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack

    from sparknet.spark.pipeline.typed import NetEstimatorMethods, NetEstimatorParams
else:
    NetEstimatorMethods = object


def _strategy(value: Any) -> Any:
    """Return a strategy's name, or its name and settings."""
    if isinstance(value, Strategy):
        return value.settings()
    if isinstance(value, Mapping):
        settings = {name: one for name, one in value.items() if name != "name"}
        return make_strategy(value["name"], **settings).settings()
    return make_strategy(value).name


def _labels(value: Any) -> Any:
    """Return weights of classes, with names of labels as JSON has them."""
    is_by_label = isinstance(value, Mapping)
    return {str(one): weight for one, weight in value.items()} if is_by_label else value


_NAMED = {"steps": "maxIter", "weight_column": "weightCol"}
"""Settings of Trainer to which pyspark.ml gives a name of its own."""
_OF_MODULES = tuple(field.name for field in fields(ModuleKeywords))
"""Settings of Trainer that are for modules of PyTorch alone."""
_OF_TABLES = ("features", "label")
"""Those that a VectorAssembler and `labelCol` take the place of."""
_AS_SOLVERS = {"batch_size": "batchSize", "clip_gradients": "clip_gradients"}
"""Those of them that have the Params of a solver's."""
_UNSAVED = ("on_event", "resources")
"""Settings of Trainer that are no Params."""
_CONVERTED = {"strategy": _strategy, "class_weights": _labels}

TRAINER = {
    "solver": ParamSetting("the net and how it learns", solver_text),
    **{
        _NAMED.get(name, name): of_training(
            told, (name,) if name in _NAMED else (), _CONVERTED.get(name)
        )
        for name, told in settings_of(Trainer).items()
        if told.kind.readable and name not in ("columns", "invalid", *_OF_TABLES)
    },
}
"""Settings of Trainer; `columns` and `handleInvalid` are those of every stage."""

SOLVER = {
    "learningRate": ParamSetting("the learning rate; the solver's unless set", FLOAT, ("base_lr",)),
    "momentum": ParamSetting("the solver's momentum", FLOAT),
    "weightDecay": ParamSetting("the solver's weight decay", FLOAT, ("weight_decay",)),
    "lr_policy": ParamSetting("how the learning rate changes", text),
    "gamma": ParamSetting("a setting of lr_policy", FLOAT),
    "power": ParamSetting("a setting of lr_policy", FLOAT),
    "stepsize": ParamSetting("a setting of lr_policy", INT),
    "stepvalue": ParamSetting("a setting of lr_policy multistep", list),
    "type": ParamSetting("the solver's type: SGD, Adam …", text),
    "regularization_type": ParamSetting("L1 or L2", text),
    "momentum2": ParamSetting("a setting of Adam", FLOAT),
    "delta": ParamSetting("a setting of Adam, AdaGrad, AdaDelta and RMSProp", FLOAT),
    "rms_decay": ParamSetting("a setting of RMSProp", FLOAT),
    "clip_gradients": ParamSetting(
        "the largest norm of the gradients, to which larger ones are scaled down", FLOAT
    ),
    "iter_size": ParamSetting("batches of an iteration", INT),
    "random_seed": ParamSetting("the seed of fillers, dropout, crops and mirrors", INT),
}
"""Settings of a solver, under Caffe's names."""

MODULE = {
    name: ParamSetting(settings_of(ModuleKeywords)[name].said.rstrip("."))
    for name in _OF_MODULES
    if name not in _AS_SOLVERS
}
"""Settings of a module of PyTorch, in place of a solver's."""

_OWN = {
    "batchSize": ParamSetting("records of a batch in training; the net's unless set", count),
    "validationIndicatorCol": ParamSetting(
        "the boolean column that is true for rows to validate with", text, ("validation",)
    ),
}
_PREPROCESSING = {
    field.name: ParamSetting("how images are prepared: docs/images.md")
    for field in fields(Preprocessing)
}
_NAMES = {keyword: name for name, one in TRAINER.items() for keyword in one.names(name)}


class NetEstimator(StageParams, SavedStage, Estimator, NetEstimatorMethods):  # type: ignore[misc]
    """A stage that trains a net and becomes a `NetModel`.

    ``solver`` is whatever `Trainer` takes.  Everything else is a Param, set by keyword, setter
    (``setMaxIter``) or parameter grid: the columns, `Trainer`'s settings, and the solver's own
    (``learningRate`` or ``base_lr``, ``momentum`` …).  The model adds the columns of
    ``rawPredictionCol``, ``probabilityCol`` and ``predictionCol``; "" leaves one out.

    ``solver`` may also be a `Trainer`: then its settings are the defaults, and the model adds the
    columns that `SparkModel.transform` adds, and no others unless they are named.  Such a one may
    have a module of PyTorch in place of a solver: docs/pytorch-modules.md.

    ``handleInvalid`` ("error", "keep" or "skip") is that of the model; with "keep" and "skip" rows
    that cannot be read, or whose label is no class, are left out of the training, and counted in
    the event `workers`.

    Each event of the training (`sparknet.training.events`) is passed to ``on_event``, which is not
    saved, as ``resources`` of a `Trainer` are not.  docs/pipelines.md is the guide.
    """

    settings: ClassVar[Mapping[str, ParamSetting]] = {
        **COLUMNS,
        **TRAINER,
        **SOLVER,
        **MODULE,
        **_OWN,
        **OUTPUT,
        **_PREPROCESSING,
    }

    renamed: ClassVar[Mapping[str, str]] = {
        "init_weights": "weights",
        "initWeights": "weights",
        "weight": "weightCol",
    }

    _is_trusted = True

    def __init__(
        self,
        solver: NetSource | Net | Trainer | None = None,
        validation: str | None = None,
        *,
        on_event: OnEvent | None = None,
        **params: Unpack[NetEstimatorParams],
    ) -> None:
        super().__init__()
        keywords = renamed.new_names(params, self.renamed, 3)
        source = keywords.pop("trainer", solver)
        trainer = source if isinstance(source, Trainer) else Trainer(source)
        if trainer.features is not None:
            raise SparkError("a stage reads one column: put a VectorAssembler before, no features=")
        self.on_event = on_event or trainer.on_event
        self.resources = trainer.resources
        for field in fields(Trainer):
            if field.name not in {*_UNSAVED, "invalid", *_OF_MODULES, *_OF_TABLES}:
                self._setDefault(
                    **{_NAMES.get(field.name, field.name): getattr(trainer, field.name)}
                )
        for name in _OF_MODULES if trainer.module is not None else ():
            if (value := getattr(trainer, name)) is not None:
                self._setDefault(**{_AS_SOLVERS.get(name, name): value})
        self._setDefault(handleInvalid=invalid(trainer.invalid))
        if trainer is not source:
            self._setDefault(
                featuresCol="features",
                labelCol="label",
                predictionCol="prediction",
                probabilityCol="probability",
                rawPredictionCol="rawPrediction",
                outputs=[],
            )
        if not isinstance(validation, (str, NoneType)):
            raise SparkError(f"validation is {validation!r}: the name of a column is needed")
        self.setParams(validation=validation, **keywords)

    @property
    def trainer(self) -> Trainer:
        """What trains, by the Params as they are now."""
        names = [field.name for field in fields(Trainer)]
        values = {
            name: self.value_of(_NAMES.get(name, name))
            for name in names
            if name not in {"solver", *_UNSAVED, "strategy", "invalid", *_OF_MODULES, *_OF_TABLES}
        }
        # Nothing can be learned of rows that the model keeps with nulls.
        values["invalid"] = "raise" if self.invalid() == "raise" else "drop"
        strategy = self.value_of("strategy")
        if isinstance(strategy, Mapping):
            strategy = dict(strategy)
            strategy = make_strategy(strategy.pop("name"), **strategy)
        values |= {name: getattr(self, name) for name in _UNSAVED}
        if self.value_of("module") is not None:
            return Trainer(strategy=strategy, **values, **self._of_module())
        solver, values["weights"] = self._recipe().applied(self._source(), values["weights"])
        values |= dict.fromkeys(values_of(Recipe(), Recipe))  # they are in the solver now
        return Trainer(self._tuned(solver), strategy=strategy, **values)

    def _put(self, name: str, value: Any) -> None:
        is_text = name == "solver" and isinstance(value, str)
        super()._put(name, OwnText(value) if is_text else value)

    def _source(self) -> Any:
        """Return the solver; that of a saved grid is trusted as far as the saved estimator is."""
        solver = self.value_of("solver")
        if self._is_trusted or not isinstance(solver, str) or isinstance(solver, OwnText):
            return solver
        message = parse_solver(solver if ":" in solver else f"net: {json.dumps(solver)}")
        distrust_solver(message)
        return message

    def _of_module(self) -> dict[str, Any]:
        for name in SOLVER:
            if name not in _AS_SOLVERS and self.isSet(self.getParam(name)):
                raise SparkError(f"{name} is a solver's, and a module was given: set optimizer")
        values = {name: self.value_of(_AS_SOLVERS.get(name, name)) for name in _OF_MODULES}
        return {name: value for name, value in values.items() if value is not None}

    def _recipe(self) -> Recipe:
        return Recipe(**{name: self.value_of(name) for name in values_of(Recipe(), Recipe)})

    def _tuned(self, solver: Any) -> Any:
        if solver is None:
            raise SparkError("NetEstimator has no solver: NetEstimator(solver, …)")
        changed = {
            (one.others or (name,))[0]: self.value_of(name)
            for name, one in SOLVER.items()
            if self.isSet(self.getParam(name))
        }
        return tuned(solver, changed, self.value_of("batchSize"))

    def _fit(self, dataset: DataFrame) -> NetModel:
        trainer = self.trainer
        by_input = self._net_columns if trainer.module is None else self._module_columns
        columns = by_input(trainer)
        with self._recipe().expected():
            trained = replace(trainer, columns=columns).fit(*self._parts(dataset))
        model = self._model(trained.model)
        if trainer.module is not None and (targets := trainer.targets):
            model._setDefault(labelCol=columns.get(targets[0], targets[0]))
        model._summary = TrainingSummary(trained)
        return model

    def _net_columns(self, trainer: Trainer) -> dict[str, str]:
        how = Preprocessing.of(trainer)
        assert trainer.solver is not None
        untrained = self._model(
            SparkModel(trainer.solver, preprocessing=how, dialect=trainer.dialect, random=True)
        )
        untrained.check()  # raises now what would fail after training
        return untrained.input_columns(training=True)

    def _module_columns(self, trainer: Trainer) -> dict[str, str]:
        columns, column, targets = dict(trainer.columns or {}), self.value_of, trainer.targets
        if name := column("featuresCol"):
            needed, more = arguments(made_module(trainer.module))
            columns.setdefault((needed or more)[0], name)
        if (name := column("labelCol")) and targets:
            columns.setdefault(targets[0], name)
        return columns

    def _model(self, model: Any) -> NetModel:
        net_model = NetModel(model)
        self.hand_over(net_model)
        return net_model

    def _parts(self, dataset: DataFrame) -> tuple[DataFrame, DataFrame | None]:
        """Return the rows to train on and those to validate with."""
        name = self.value_of("validationIndicatorCol")
        if not name:
            return dataset, None
        if name not in dataset.columns:
            raise SparkError(f"the data has no column '{name}' for validation")
        column = dataset[name]
        if dataset.schema[name].nullable and (
            count := dataset.where(column.isNull()).count()
        ):  # those rows would be in neither part
            raise SparkError(
                f"column '{name}', which says what is held out for validation, is null "
                f"in {count} rows: fill it with true or false"
            )
        return dataset.where(~column), dataset.where(column)

    # -- saving --------------------------------------------------------------------------

    def _params_as_json(self, params: dict[Any, Any]) -> dict[str, Any]:
        values = {
            param: value
            for param, value in params.items()
            if param.name not in ("solver", *ROLES)
            and param.name not in _PREPROCESSING
            and not (param.name == "weights" and weights_of(value) is not None)
        }
        return super()._params_as_json(values)

    def _save_files(self, folder: Path) -> dict[str, Any]:
        solver = self._source()
        if self.value_of("module") is not None:
            code = write_learning({role: self.value_of(role) for role in ROLES}, folder)
            if (begin := weights_of(self.value_of("weights"))) is not None:
                begin.save(folder / _BEGIN)
            return {"data": [], "preprocessing": None, "net": None, "learning": code}
        if solver is None:
            return {"data": [], "preprocessing": None, "net": None}
        settings = solver.settings if isinstance(solver, Net) else solver_of(solver)
        if settings is None:
            raise SparkError("NetEstimator has a net instead of a solver: it cannot be saved")
        whole = portable_solver(settings)
        (folder / _SOLVER).write_text(with_weights(whole.text, settings), encoding="utf-8")
        for name, data in whole.files.items():
            (folder / name).write_bytes(data)
        weights = weights_of(solver)
        begin = weights_of(self.value_of("weights"))
        if weights is not None:
            weights.save(folder / _WEIGHTS)
        if begin is not None:
            begin.save(folder / _BEGIN)
        how = Preprocessing.of(self.trainer)
        return {
            "data": sorted(whole.files),
            "preprocessing": as_json(how),
            "net": None
            if weights is None
            else {"precision": solver.precision, "preprocessing": as_json(solver.preprocessing)},
        }

    @classmethod
    def _load_files(cls, folder: Path, metadata: dict[str, Any], trusted: bool) -> NetEstimator:
        for params in (metadata["paramMap"], metadata["defaultParamMap"]):
            params.pop("solver", None)  # never written there, and it would be trusted
        is_plain = "featuresCol" in metadata["defaultParamMap"]  # and made of no Trainer
        estimator = cls() if is_plain else cls(Trainer())
        estimator._is_trusted = trusted
        if (code := metadata.get("learning")) is not None:
            parts = read_learning(code, folder, trusted)
            estimator._setDefault(**{role: one for role, one in parts.items() if one is not None})
            if (folder / _BEGIN).exists():
                estimator.setParams(weights=WeightCollection.load(folder / _BEGIN))
            return estimator
        if not (folder / _SOLVER).exists():
            return estimator
        text, own = unpacked(folder, _SOLVER, metadata["data"])
        solver: Any = parse_solver(text)
        if not trusted:
            distrust_solver(solver, own)
        if (of := metadata["net"]) is not None:
            weights = WeightCollection.load(folder / _WEIGHTS)
            how = of_json(of["preprocessing"])
            solver = Net(solver, weights, precision=of["precision"], preprocessing=how)
        estimator._setDefault(solver=solver)
        if (preprocessing := of_json(metadata["preprocessing"])) is not None:
            estimator.setParams(**preprocessing.settings())
        if (folder / _BEGIN).exists():
            estimator.setParams(weights=WeightCollection.load(folder / _BEGIN))
        return estimator


_SOLVER, _WEIGHTS, _BEGIN = "solver.prototxt", "weights.caffemodel", "init_weights.caffemodel"
