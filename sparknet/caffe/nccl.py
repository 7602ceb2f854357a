"""NCCL: pycaffe's training on several GPUs, which an engine for the CPU does not have."""

from __future__ import annotations

from typing import NoReturn

from sparknet.errors import SparkNetError


class NoNCCLError(SparkNetError, RuntimeError):
    """A program wants to train on several GPUs by pycaffe's own way."""


def _refuse() -> NoReturn:
    raise NoNCCLError(
        "caffe.NCCL trains on several GPUs, which sparknet does by workers: "
        "train on several workers with sparknet.train or sparknet.spark.Trainer"
    )


class NCCL:
    """Exists by name only: any use raises an error that says what to use instead."""

    def __init__(self, solver: object, uid: object) -> None:
        _refuse()

    @staticmethod
    def new_uid() -> bytes:
        _refuse()

    def bcast(self) -> None:
        _refuse()
