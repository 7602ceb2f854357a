"""``python -m sparknet`` is the command `sparknet`."""

from __future__ import annotations

import sys

from sparknet.cli import main

sys.exit(main())
