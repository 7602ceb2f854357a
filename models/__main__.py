"""``python -m models``: write every model's net.prototxt and solver.prototxt again."""

from __future__ import annotations

from models import NAMES, files


def main() -> None:
    for name in NAMES:
        for path, text in files(name).items():
            path.write_text(text, encoding="utf-8")
            print(f"{path.parent.name}/{path.name}")


if __name__ == "__main__":
    main()
