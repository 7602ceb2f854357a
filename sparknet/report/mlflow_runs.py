"""autolog: every training of this process as a run of MLflow."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import extra
from sparknet.net.scratch import scratch_folder
from sparknet.report.log import JsonLines
from sparknet.report.mlflow_models import log_model
from sparknet.report.page import report
from sparknet.training import observers
from sparknet.training.history import Event, number, share_communicating, single
from sparknet.training.result import TrainedModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparknet.training.result import Trained

_PARAMS = ("net", "strategy", "workers", "steps", "seconds", "records", "batch_size")
"""What stays as it is when a run goes on after a loss: MLflow takes no other value for a param."""
_LONGEST = 500
"""Characters that MLflow takes for a param."""
_OFTEN, _MOST = 1.0, 900
"""Seconds between requests, and the metrics that one takes."""


class MlflowWarning(UserWarning):
    """MLflow refused something; the training goes on."""


def autolog(*, log_models: bool = True, disable: bool = False) -> None:
    """From now on log each `sparknet.train` and `Trainer.fit` of this process to MLflow.

    A training has the active run, or a run of its own: the settings as params, the losses, rates
    and metrics of its rounds and validations, the report and the events as artifacts and, with
    ``log_models``, the trained model.  What MLflow refuses becomes a warning, and the training goes
    on.  ``disable=True`` ends it.
    """
    with extra("mlflow", "mlflow", "autolog"):
        import mlflow  # noqa: F401
    observers.forget(_Tracked)
    _Tracked.log_models = log_models
    if not disable:
        observers.observe(_Tracked)


class _Tracked(observers.Observer):
    """One training."""

    log_models = True

    def __init__(self) -> None:
        self._run: Any = None
        self._is_own = False
        self._folder = scratch_folder("mlflow")
        self._events = Path(self._folder.name, "events.jsonl")
        self._lines = JsonLines(self._events)
        self._is_taking, self._sent = True, time.monotonic()
        self._waiting: list[Any] = []
        with self._forgiven():  # here, as MLflow's active run is that of a thread
            import mlflow

            active = mlflow.active_run()
            self._is_own = active is None
            self._run = active or mlflow.start_run()

    def hear(self, event: Event) -> None:
        self._lines(event)
        if self._is_taking:
            with self._forgiven():
                self._tell(event)

    def done(self, trained: Trained) -> None:
        if self._is_taking:
            with self._forgiven():
                self._finish(trained)
        self._end("FINISHED")

    def failed(self) -> None:
        if self._is_taking:
            with self._forgiven():
                self._send()
        self._end("FAILED")

    # -- inside --------------------------------------------------------------------------

    @contextmanager
    def _forgiven(self) -> Iterator[None]:
        """Whatever MLflow refuses becomes a warning, and nothing more is logged."""
        try:
            yield
        except Exception as error:
            self._is_taking = False
            first = (str(error).splitlines() or [type(error).__name__])[0]
            message = (
                f"MLflow refused what was logged, and the training goes on without it: {first}"
            )
            warnings.warn(message, MlflowWarning, stacklevel=4)

    def _tell(self, event: Event) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        kind = event["event"]
        if kind == "start":
            params = [Param(name, text) for name, text in _params(event).items()]
            MlflowClient().log_batch(self._run.info.run_id, params=params)
        values: dict[str, Any] = {}
        if kind == "round":
            values = _round(event)
        if kind == "validation":
            values = single(event["metrics"])
        at, step = int(1000 * time.time()), int(event["iteration"]) if values else 0
        self._waiting += [Metric(_name(key), float(one), at, step) for key, one in values.items()]
        if time.monotonic() - self._sent > _OFTEN or len(self._waiting) > _MOST:
            self._send()

    def _send(self) -> None:
        """Send the waiting metrics: a request for each would slow down short rounds."""
        from mlflow import MlflowClient

        for begin in range(0, len(self._waiting), _MOST):
            part = self._waiting[begin : begin + _MOST]
            MlflowClient().log_batch(self._run.info.run_id, metrics=part)
        self._waiting, self._sent = [], time.monotonic()

    def _finish(self, trained: Trained) -> None:
        import mlflow

        self._send()
        outcome = trained.outcome
        mlflow.set_tags({"sparknet.reason": outcome.reason})
        mlflow.log_metrics(
            {_name(name): float(value) for name, value in single(outcome.metrics).items()},
            step=outcome.iteration,
        )
        self._lines.close()
        page = Path(self._folder.name, "report.html")
        report(self._events, out=page)
        for file in (self._events, page):
            mlflow.log_artifact(str(file), "sparknet")
        is_nameless = isinstance(trained, TrainedModule) and trained.saved().made_by is None
        if self.log_models and is_nameless:
            mlflow.log_artifact(str(_state_dict(trained.module, self._folder.name)), "sparknet")
        elif self.log_models:
            log_model(trained)

    def _end(self, status: str) -> None:
        import mlflow

        self._lines.close()
        if self._is_own and self._run is not None:
            with self._forgiven():
                mlflow.end_run(status)
        self._folder.cleanup()


def _state_dict(module: Any, folder: str) -> Path:
    """Return the weights of a module of PyTorch whose code has no name, as torch saves them."""
    import torch

    file = Path(folder, "module.pt")
    torch.save(module.state_dict(), file)
    return file


def _params(event: Mapping[str, Any]) -> dict[str, str]:
    """Return what is logged of a training's settings."""
    params = {name: event[name] for name in _PARAMS if event.get(name) is not None}
    params |= {f"strategy.{name}": value for name, value in event["settings"].items()}
    return {name: str(value)[:_LONGEST] for name, value in params.items()}


def _round(event: Mapping[str, Any]) -> dict[str, float]:
    """Return what is logged of a round."""
    metrics = {
        "training_loss": number(event, "loss"),
        "learning_rate": number(event, "rate"),
        "divergence": number(event, "divergence"),
        "share_communicating": share_communicating(event),
    }
    return {name: value for name, value in metrics.items() if value is not None}


def _name(name: str) -> str:
    """MLflow's metrics have letters, digits and some signs."""
    return "".join(one if one.isalnum() or one in "_-./ :" else "_" for one in name)
