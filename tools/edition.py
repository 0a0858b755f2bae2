"""Which edition a person gets: the one they name, else the one of their locale."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping

from tools.say import Stop

EDITIONS = ("zh", "en")


def of_locale(environment: Mapping[str, str], system: str = "") -> str:
    """The edition of a locale; the variables win in POSIX order, then the system's own name for its locale.

    An empty variable counts as absent. Windows sets none of them and says for example "Chinese_China".
    """
    names = (environment.get("LC_ALL"), environment.get("LC_MESSAGES"), environment.get("LANG"), system)
    first = next((name for name in names if name), "")
    return "zh" if first.lower().startswith(("zh", "chinese")) else "en"


def chosen(name: str | None) -> str:
    """The edition named, or that of this machine's locale when none is."""
    if not name:
        return of_locale(os.environ, locale.getlocale()[0] or "")
    if name not in EDITIONS:
        raise Stop(f"EDITION 只能是 zh 或 en，收到的是 {name!r}。", f"EDITION must be zh or en, got {name!r}.")
    return name
