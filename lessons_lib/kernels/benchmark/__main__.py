"""``python -m lessons_lib.kernels.benchmark``."""

from __future__ import annotations

import sys

from lessons_lib.kernels.benchmark.run import main

sys.exit(main())
