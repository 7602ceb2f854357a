"""GPUs by the names that Spark gives: numbers, UUIDs, parts of a GPU."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from sparknet.cli import doctor
from sparknet.errors import SparkError
from sparknet.spark.cluster import executors, gpus
from sparknet.spark.cluster.gpus import ListedGpu, listed, number_of

WHOLE = (
    "GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-4a1f0d5e-91a3-6d2b-7e5c-1f0e4c3b2a10)\n"
    "GPU 1: Tesla V100-SXM2-16GB (UUID: GPU-c0b7e8aa-3d4f-5a6b-8c9d-0e1f2a3b4c5d)\n"
)
"""Two GPUs, as nvidia-smi -L says it."""
PARTS = (
    "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n"
    "  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n"
    "  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)\n"
)
"""A GPU in two parts, under a driver from 470 on."""
OLD_PARTS = (
    "GPU 0: A100-SXM4-40GB (UUID: GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0)\n"
    "  MIG 7g.40gb Device 0: (UUID: MIG-GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0/0/0)\n"
)
"""One part, under an older driver."""
FIRST, SECOND = (one.uuid for one in listed(WHOLE))
PART, OTHER = listed(PARTS)[0].parts


def test_what_a_machine_lists():
    assert listed(WHOLE) == [ListedGpu(0, FIRST), ListedGpu(1, SECOND)]
    assert FIRST == "GPU-4a1f0d5e-91a3-6d2b-7e5c-1f0e4c3b2a10"
    assert [len(one.parts) for one in listed(PARTS)] == [2]
    assert listed(OLD_PARTS)[0].parts == ("MIG-GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0/0/0",)
    assert listed("Failed to initialize NVML: Driver/library version mismatch\n") == []


@pytest.mark.parametrize(
    ("address", "visible", "text", "number"),
    [
        ("0", None, "", 0),
        ("5", None, "", 5),  # without a listing, too
        (SECOND, None, WHOLE, 1),
        (PART, None, PARTS, 0),
        ("3", "2,3", "", 1),
        ("3", " 3 ,2", "", 0),
        (SECOND, f"{SECOND},{FIRST}", "", 0),
        (FIRST, "1,0", WHOLE, 1),
        ("1", f"{FIRST},{SECOND}", WHOLE, 1),
        ("1", "GPU-4a1f,GPU-c0b7", WHOLE, 1),
        (OTHER, OTHER, PARTS, 0),
    ],
)
def test_the_number_in_this_process(address, visible, text, number, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert number_of(address, text) == number


@pytest.mark.parametrize(
    ("address", "visible", "text", "said"),
    [
        ("1", "0", WHOLE, "the GPU 1, which CUDA_VISIBLE_DEVICES='0' hides"),
        (SECOND, "0", WHOLE, f"the GPU {SECOND}, which CUDA_VISIBLE_DEVICES='0' hides"),
        ("0", "", WHOLE, "the GPU 0, which CUDA_VISIBLE_DEVICES='' hides"),
        (OTHER, None, PARTS, f"start the executor with CUDA_VISIBLE_DEVICES={OTHER}"),
        (PART, None, WHOLE, f"nvidia-smi -L lists others: {FIRST}, {SECOND}"),
        (FIRST, None, "", "nvidia-smi -L lists others: none"),
    ],
)
def test_what_this_process_does_not_see(address, visible, text, said, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(SparkError, match=r"^Spark gave the task ") as caught:
        number_of(address, text)
    assert said in str(caught.value)


def test_the_listing_is_the_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (gpus.listing(), gpus.models()) == ("", [])
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = -L ] && printf '%s' '{WHOLE}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus.listing() == WHOLE
    assert gpus.models() == ["2 x Tesla V100-SXM2-16GB"]
    assert executors.driver().gpus == ["2 x Tesla V100-SXM2-16GB"]
    assert doctor._gpus_of_spark(executors.driver()).startswith(
        "which Spark gives to no task (spark.exec"
    )
    given = replace(executors.driver(), addresses=["0", "1"])
    assert doctor._gpus_of_spark(given) == "Spark gives tasks the GPUs 0, 1"
    assert number_of(SECOND) == 1


@pytest.mark.slow
def test_what_spark_hands_to_tasks(tmp_path):
    """A worker whose script names three GPUs, by a number, a UUID and a part's name."""
    pytest.importorskip("pyspark")
    from tests.spark.cluster import environment

    addresses = ["0", SECOND, PART]
    script = tmp_path / "gpus"
    script.write_text(f"#!/bin/sh\necho '{json.dumps({'name': 'gpu', 'addresses': addresses})}'\n")
    script.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.gpu_driver", script, ",".join(addresses), "cuda"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["executors"] == [[3, addresses]]
    assert said["numbers"] == [f"{number} {one}" for number, one in enumerate(addresses)]
    assert sorted(said["preflight"]) == [[one] for one in addresses]
    assert said["slots"] == [3, 1]
    assert [len(one) for one in said["pair"]] == [2]
    lacks = r"(computing with PyTorch needs|there is no device 'cuda:\d')"
    assert re.search(rf"worker \d on .* cannot train: {lacks}", said["cuda"])
