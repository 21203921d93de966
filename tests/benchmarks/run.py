"""``make bench``: measure and write the table. See ``python tests/benchmarks/run.py --help``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.measure import main

if __name__ == "__main__":
    main()
