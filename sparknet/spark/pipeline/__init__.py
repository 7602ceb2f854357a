"""Nets as stages of pyspark.ml's pipelines.

This package is imported by nobody else here, because its classes cannot be defined without pyspark.
"""

from __future__ import annotations

from sparknet.spark.pipeline.estimator import NetEstimator
from sparknet.spark.pipeline.featurizer import NetFeaturizer
from sparknet.spark.pipeline.model import NetModel
from sparknet.spark.pipeline.sequences import SequenceEncoder
from sparknet.spark.train.result import TrainingSummary

__all__ = ["NetEstimator", "NetFeaturizer", "NetModel", "SequenceEncoder", "TrainingSummary"]
