"""What depends on YARN and Kubernetes, by recorded environments: no such cluster runs here."""

import re

import pytest

from sparknet.spark.cluster import containers

UNLIMITED = "9223372036854771712"
"""What version 1 says of memory without a limit: the largest multiple of a page."""

# A pod with a memory limit of 1408 MiB and one and a half processors, as the kubelet writes them,
# on a node with version 2: the container sees its own group as the root of all groups.
POD = {
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/memory.max": "1476395008\n",
    "sys/fs/cgroup/memory.current": "402653184\n",
    "sys/fs/cgroup/cpu.max": "150000 100000\n",
}
# The same without a namespace of its own: limits stand at the pod and at the container.
POD_ON_HOST = {
    "proc/self/cgroup": "0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-ab.scope\n",
    "sys/fs/cgroup/kubepods.slice/memory.max": "16000000000\n",
    "sys/fs/cgroup/kubepods.slice/kubepods-pod7.slice/memory.max": "1476395008\n",
    "sys/fs/cgroup/kubepods.slice/kubepods-pod7.slice/cri-containerd-ab.scope/memory.max": "max\n",
    "sys/fs/cgroup/kubepods.slice/kubepods-pod7.slice/cri-containerd-ab.scope/cpu.max": (
        "max 100000\n"
    ),
}
# A node with version 1, and both processors of a pod's limit.
OLD_POD = {
    "proc/self/cgroup": (
        "11:memory:/kubepods/burstable/pod7/ab\n4:cpu,cpuacct:/kubepods/burstable/pod7/ab\n"
        "1:name=systemd:/kubepods/burstable/pod7/ab\n"
    ),
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "1476395008\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
}
# A NodeManager with LinuxContainerExecutor and cgroups for processors alone, its usual setting.
YARN = {
    "proc/self/cgroup": (
        "9:memory:/\n3:cpu,cpuacct:/hadoop-yarn/container_e17_1700000000000_0042_01_000002\n0::/\n"
    ),
    "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED + "\n",
    "sys/fs/cgroup/cpu,cpuacct/hadoop-yarn/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu,cpuacct/hadoop-yarn/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/hadoop-yarn/container_e17_1700000000000_0042_01_000002/"
    "cpu.cfs_quota_us": "400000\n",
    "sys/fs/cgroup/cpu,cpuacct/hadoop-yarn/container_e17_1700000000000_0042_01_000002/"
    "cpu.cfs_period_us": "1000000\n",
}
# No container at all.
BARE = {"proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope\n"}


@pytest.mark.parametrize(
    ("files", "memory", "processors"),
    [
        (POD, 1408 << 20, 1.5),
        (POD_ON_HOST, 1408 << 20, None),
        (OLD_POD, 1408 << 20, 2.0),
        (YARN, None, 0.4),
        (BARE, None, None),
        ({}, None, None),
        ({"sys/fs/cgroup/memory.max": "nonsense\n", "sys/fs/cgroup/cpu.max": "\n"}, None, None),
        ({"sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20, None),
    ],
    ids=["pod", "pod on host", "old pod", "yarn", "bare", "nothing", "nonsense", "no proc"],
)
def test_limits_of_control_groups(tmp_path, files, memory, processors):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert containers.memory_limit(tmp_path) == memory
    assert containers.processors_limit(tmp_path) == processors


MIB = 1 << 20


@pytest.mark.parametrize(
    ("settings", "mebibytes"),
    [
        ({}, 384),
        ({"spark.executor.memory": "8g"}, 819),
        ({"spark.executor.memory": "4000"}, 400),
        ({"spark.executor.memoryOverhead": "1g", "spark.executor.memory": "20g"}, 1024),
        ({"spark.executor.memoryOverhead": "600"}, 600),
        ({"spark.executor.memoryOverheadFactor": "0.5", "spark.executor.memory": "2g"}, 1024),
        ({"spark.kubernetes.memoryOverheadFactor": "0.4", "spark.executor.memory": "2g"}, 819),
        ({"spark.executor.pyspark.memory": "2g"}, 2048 + 384),
        ({"spark.executor.minMemoryOverhead": "700m"}, 700),
    ],
)
def test_the_room_beside_the_jvm(settings, mebibytes):
    assert containers.python_room(settings) // MIB == mebibytes


def test_a_container_that_is_too_small_is_named():
    settings = {"spark.executor.cores": "4", "spark.task.cpus": "2"}
    for master in ("yarn", "k8s://https://api:6443"):
        assert containers.too_tight(master, settings, 192 * MIB) is None
        said = containers.too_tight(master, settings, 192 * MIB + 1)
        assert said is not None
        assert said.startswith(
            "an executor's container has 384 MiB beside its JVM, and 2 workers in it take 385 MiB"
        )
        assert "spark.executor.memoryOverhead" in said
    assert containers.too_tight("spark://host:7077", settings, 1 << 40) is None
    assert "1 worker in it takes 400 MiB" in str(containers.too_tight("yarn", {}, 400 * MIB))


@pytest.mark.parametrize("text", ["", "g", "-1g", "1.5g", "1x"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="no memory size of Spark"):
        containers.nbytes(text)


@pytest.mark.parametrize(
    ("master", "settings", "said", "ends"),
    [
        ("spark://a:7077", {}, "the task of a worker 4 times .*; then another job is begun", False),
        ("spark://a:7077", {"spark.task.maxFailures": "9"}, "a worker 9 times", False),
        ("local[2]", {}, "a worker 1 times", False),
        ("local[*, 4]", {}, "a worker 4 times", False),
        ("local[2]", {"spark.task.maxFailures": "9"}, "a worker 1 times", False),
        ("yarn", {}, "when 3 executors are lost in all, however long", True),
        ("k8s://a", {"spark.executor.instances": "8"}, "when 16 executors are lost in all", True),
        (
            "k8s://a",
            {"spark.kubernetes.allocation.pods.allocator": "statefulset"},
            "4 times .*; then another job is begun",
            False,
        ),
        ("yarn", {"spark.executor.maxNumFailures": "50"}, "when 50 executors are lost", True),
        ("yarn", {"spark.yarn.max.executor.failures": "7"}, "when 7 executors are lost", True),
        (
            "yarn",
            {"spark.executor.failuresValidityInterval": "1h", "spark.executor.instances": "1"},
            "when 3 executors are lost within 1h",
            False,
        ),
        ("yarn", {"spark.dynamicAllocation.enabled": "true"}, "when very many executors", False),
        (
            "yarn",
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "5",
                "spark.executor.instances": "40",
            },
            "when 10 executors are lost in all",
            True,
        ),
    ],
)
def test_what_losses_spark_allows(master, settings, said, ends):
    found, ended = containers.losses_allowed(master, settings, 8)
    assert re.search(said, found)
    assert ended is ends


def test_the_rule_of_lost_executors_is_sparks_own(spark):
    jvm = spark._jvm
    tracker = jvm.org.apache.spark.deploy.ExecutorFailureTracker
    for settings in (
        {},
        {"spark.executor.instances": "1"},
        {"spark.executor.instances": "8"},
        {"spark.executor.maxNumFailures": "50"},
        {"spark.yarn.max.executor.failures": "7"},
        {"spark.dynamicAllocation.enabled": "true"},
        {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "5"},
    ):
        conf = jvm.org.apache.spark.SparkConf(False)
        for name, value in settings.items():
            conf.set(name, value)
        most = containers.executor_failures(settings)
        assert tracker.maxNumExecutorFailures(conf) == (2**31 - 1 if most is None else most)
