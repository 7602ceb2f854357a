"""What the fuzzer once found stays found: python -m tests.fuzz writes seeds/."""

import random
import time
from pathlib import Path

import pytest

from tests.fuzz.corpus import another, corpus
from tests.fuzz.readers import READERS, check, name_for

SEEDS = sorted(Path(__file__).parent.glob("seeds/*-*"))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(seed.name))
def test_seed(seed, tmp_path):
    kind = seed.name.rpartition("-")[0]
    path = tmp_path / name_for(kind)
    path.write_bytes(seed.read_bytes())
    start = time.process_time()
    check(kind, path)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("kind", sorted(READERS))
def test_a_little_fuzzing(kind, tmp_path):
    files, rng = corpus()[kind], random.Random(2)
    path = tmp_path / name_for(kind)
    for data in files[:1] + [another(kind, files, rng) for _ in range(60)]:
        path.write_bytes(data)
        check(kind, path)
