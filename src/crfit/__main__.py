"""``python -m crfit``: the command line."""

from __future__ import annotations

import sys

from crfit.cli import main

if __name__ == "__main__":
    sys.exit(main())
