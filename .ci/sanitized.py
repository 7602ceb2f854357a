"""Runs a module on the tree that this file lies in, whatever tree a venv has for editing.

python .ci/sanitized.py MODULE ARGUMENTS...: for `make sanitize-python` and `make fuzz-guided`,
whose trees have an extension of their own.  As a plugin of pytest (-p sanitized) it does the same
in the processes that pytest-xdist starts.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

sys.meta_path[:] = [one for one in sys.meta_path if "_editable" not in type(one).__module__]
sys.path.insert(0, str(ROOT))

from sparknet.native import locate  # noqa: E402  only now it is that of this tree

assert Path(locate.__file__).is_relative_to(ROOT), locate.__file__
if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
