"""``python -m sparknet.models``: write the files of ``models/`` again, from the top of the tree."""

from __future__ import annotations

from pathlib import Path

from sparknet.models import NAMES, files


def main() -> None:
    for name in NAMES:
        folder = Path("models") / name
        for file, text in files(name, folder).items():
            (folder / file).write_text(text, encoding="utf-8")
        print(folder)


if __name__ == "__main__":
    main()
