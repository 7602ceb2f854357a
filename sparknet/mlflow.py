"""MLflow's flavour of sparknet: models that are logged, registered and served, and `autolog`.

It needs the package mlflow (``pip install 'sparknet[mlflow]'``); what it logs predicts without
Spark.
"""

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
