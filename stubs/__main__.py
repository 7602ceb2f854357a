"""Write the stubs into a copy of the folder `sparknet`: `python -m stubs FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from stubs import builders, params

if __name__ == "__main__":
    for stub in (builders, params):
        path = Path(sys.argv[1], stub.PATH)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stub.stub(), encoding="utf-8")
