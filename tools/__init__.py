"""Sets the course up, opens it, checks it. Standard library only: these run before anything is installed."""

import sys

# Before any other import, so that an old Python meets this line and not a syntax error.
if sys.version_info < (3, 10):  # noqa: UP036
    sys.exit(
        "Python 太旧（{0}），需要 3.10 或更新；也可以用 make lab PYTHON=/path/to/python3.12 指定。\n"
        "Python is too old ({0}): 3.10 or newer is needed; name one with make lab PYTHON=/path/to/python3.12.".format(
            ".".join(map(str, sys.version_info[:3]))
        )
    )
