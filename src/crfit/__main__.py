"""``python -m crfit``: the command line."""

import sys

from crfit.cli import main

if __name__ == "__main__":
    sys.exit(main())
