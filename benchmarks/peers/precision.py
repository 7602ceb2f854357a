"""The precisions of sparknet's engine."""

from __future__ import annotations


def precisions() -> list[str]:
    """float32, and bf16 if the processor supports it."""
    from sparknet.native import has_bf16

    return ["float32", "bf16"] if has_bf16() else ["float32"]
