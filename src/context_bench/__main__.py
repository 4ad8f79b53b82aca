"""`python -m context_bench`."""

import sys

from context_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
