"""The table of classes: the true ones down, the predicted ones across, shaded."""

from __future__ import annotations

from collections.abc import Sequence


def confusion(rows: Sequence[Sequence[float]]) -> str:
    """How often each class, a row, was taken for each, a column."""
    above = f'<tr><th colspan="2"></th><th colspan="{len(rows)}">predicted class</th></tr>'
    names = "".join(f"<th>{label}</th>" for label in range(len(rows)))
    body = ""
    for label, row in enumerate(rows):
        count = sum(row)
        right = f"{row[label] / count:.1%}" if count else "none seen"
        cells = "".join(
            f'<td style="--share:{round(100 * value / (count or 1))}%">{value:.0f}</td>'
            for value in row
        )
        body += f"<tr><th>{label}</th><td>{right}</td>{cells}</tr>"
    head = f"<thead>{above}<tr><th>true class</th><th>right</th>{names}</tr></thead>"
    inner = f"{head}<tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="confusion">{inner}</table></div>'
