"""MLflow's flavour of sparknet: models logged, registered and served (extra mlflow)."""

from __future__ import annotations

from sparknet.report.mlflow_models import (
    FLAVOR_NAME,
    _load_pyfunc,
    get_default_pip_requirements,
    load_model,
    log_model,
    save_model,
)
from sparknet.report.mlflow_runs import autolog

__all__ = [
    "FLAVOR_NAME",
    "_load_pyfunc",
    "autolog",
    "get_default_pip_requirements",
    "load_model",
    "log_model",
    "save_model",
]
