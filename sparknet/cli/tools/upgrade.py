"""upgrade_net_proto_text, upgrade_net_proto_binary and upgrade_solver_proto_text."""

from __future__ import annotations

from functools import partial

from sparknet.cli.tools.tool import Flags, Tool, said
from sparknet.cli.upgrade import upgrade


def _upgrade(kind: str, name: str, words: list[str], flags: Flags) -> int:
    status = upgrade(words[0], words[1], kind, name)
    said(f"Wrote {words[1]}")
    return status


def _tool(name: str, kind: str) -> Tool:
    return Tool(name, "OLD NEW", partial(_upgrade, kind, name))


NET_TEXT = _tool("upgrade_net_proto_text", "net")
NET_BINARY = _tool("upgrade_net_proto_binary", "model")
SOLVER_TEXT = _tool("upgrade_solver_proto_text", "solver")
