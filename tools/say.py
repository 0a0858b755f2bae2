"""What the tools say to a person: progress in the edition's language, failures in both."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable

_edition = "en"


class Stop(Exception):  # noqa: N818  # it ends a tool in an orderly way, as StopIteration ends a loop
    """The tool cannot go on; both sentences say what to do."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(zh, en)
        self.zh = zh
        self.en = en


def use_edition(edition: str) -> None:
    """From here on `tell` speaks this edition's language."""
    global _edition
    _edition = edition


def tell(zh: str, en: str) -> None:
    """Say what is being done."""
    print(zh if _edition == "zh" else en, flush=True)


def run(main: Callable[[], int]) -> None:
    """Run a tool's main function; end with its exit code, or with a line that says what to do."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a console that lacks Chinese must not crash
    try:
        code = main()
    except Stop as stop:
        code = _fail(stop)
    except OSError as error:
        code = _fail(explained(error))
    except KeyboardInterrupt:
        print("\n已中断；再运行一次即可继续。\nInterrupted; run it again to go on.", file=sys.stderr, flush=True)
        code = 130
    sys.exit(code)


def explained(error: OSError) -> Stop:
    """What to do about a file that could not be written or read; other errors are raised again, with their trace."""
    if error.errno == errno.ENOSPC:
        return Stop("磁盘满了：请腾出空间后再运行一次。", "The disk is full: free some space and run it again.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Stop(
            f"没有权限写 {error.filename}：请把课程放到你自己的文件夹里再运行。",
            f"Not allowed to write {error.filename}: put the course into a folder of your own and run it again.",
        )
    raise error


def _fail(stop: Stop) -> int:
    print(f"\n✗ {stop.zh}\n✗ {stop.en}", file=sys.stderr, flush=True)
    return 1
