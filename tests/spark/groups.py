"""Tests of one process, because they share what is slow to start.

pytest-xdist 3.8 has marks for this, which do nothing with pytest 9.2: it sets names of tests that
pytest no longer reads.
"""

from xdist.scheduler import LoadScopeScheduling

FILES = {
    "the standalone cluster": [
        *("elastic", "executors", "faults", "killed_driver", "lost_machine", "submit"),
    ],
    "the local session": [
        "attacks",
        "large_data",
        "spark_strategies",
        "stages",
    ],
    "the Connect server": ["apart", "connect"],
}
LOCAL_CONNECT = [
    "tests/spark/test_session.py::test_a_local_spark_beside_spark_connect",
    "tests/spark/test_frame.py::test_an_rdd_where_the_session_is_one_of_connect",
    "tests/examples/test_spark.py::test_an_application_runs_under_connect",
]
"""The server that SPARK_REMOTE=local starts takes the port 15002, and no other."""
GROUPS = {f"tests/spark/test_{name}.py": what for what, names in FILES.items() for name in names}
GROUPS |= dict.fromkeys(LOCAL_CONNECT, "the port 15002")
"""What tests share, by file or function; every other test is for itself."""


class Groups(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file, _, name = nodeid.partition("::")
        function = f"{file}::{name.partition('[')[0].partition('@')[0]}"
        return GROUPS.get(file) or GROUPS.get(function, nodeid)
