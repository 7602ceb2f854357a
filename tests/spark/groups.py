"""Tests of one process, because they share what is slow to start.

pytest-xdist 3.8 has marks for this, which do nothing with pytest 9.2: it sets names of tests that
pytest no longer reads.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

FILES = {
    "the standalone cluster": ["faults", "killed_driver", "lost_machine", "submit"],
    "the local session": [
        "attacks",
        "detect_and_match",
        "large_data",
        "spark_strategies",
        "stages",
        "streams",
    ],
    "the Connect server": ["connect"],
}
"""By what they share; every other test is for itself."""
GROUPS = {f"tests/spark/test_{name}.py": what for what, names in FILES.items() for name in names}


class Groups(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid.partition("::")[0], nodeid)
