"""``python -m sl1max``."""

import sys

from sl1max.cli._main import main

if __name__ == "__main__":
    sys.exit(main())
