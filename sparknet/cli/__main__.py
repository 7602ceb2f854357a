"""``python -m sparknet.cli`` is the command `sparknet`."""

from __future__ import annotations

import sys

from sparknet.cli import main

sys.exit(main())
