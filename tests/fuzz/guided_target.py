"""One kind of tests/fuzz/guided.py, by Atheris: python -m tests.fuzz.guided_target KIND OPTIONS

OPTIONS are libFuzzer's.  What is refused by a SparkNetError is no finding.
"""

import os
import sys
import tempfile
from pathlib import Path

if "with_fuzzer" in os.environ.get("LD_PRELOAD", ""):  # libFuzzer comes with the sanitizers
    import atheris_no_libfuzzer as atheris
else:
    import atheris

with atheris.instrument_imports(include=["sparknet"], enable_loader_override=False):
    from tests.fuzz.readers import check, name_for


def main():
    kind, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name_for(kind))

        def read(data: bytes) -> None:
            path.write_bytes(data)
            check(kind, path)

        atheris.Setup([sys.argv[0], *options], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
