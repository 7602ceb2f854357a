"""The precisions of sparknet's engine."""

from __future__ import annotations


def precisions() -> list[str]:
    """float32, and bf16 and int8 if the processor supports them."""
    from sparknet.native import has_bf16, has_int8

    found = {"float32": True, "bf16": has_bf16(), "int8": has_int8()}
    return [precision for precision, is_there in found.items() if is_there]
