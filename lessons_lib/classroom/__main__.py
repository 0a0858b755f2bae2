"""``python -m lessons_lib.classroom``."""

from __future__ import annotations

import sys

from lessons_lib.classroom.report import main

if __name__ == "__main__":
    sys.exit(main())
