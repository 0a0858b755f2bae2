"""The part of Zero to JupyterHub's values that ``deploy/`` uses, copied by hand from its ``values.schema.yaml``."""

from __future__ import annotations

CHART = "4.4.0"

# Key and what the chart takes there. ``dict``: whatever stands below is passed on to a program that knows it.
_TEXT, _NUMBER = (str,), (int, float, str)
KEYS: dict[str, tuple[type, ...]] = {
    "hub.config": (dict,),
    "proxy.https.enabled": (bool,),
    "proxy.https.hosts": (list,),
    "proxy.https.letsencrypt.contactEmail": _TEXT,
    "singleuser.image.name": _TEXT,
    "singleuser.image.tag": _TEXT,
    "singleuser.defaultUrl": _TEXT,
    "singleuser.startTimeout": (int,),
    "singleuser.memory.guarantee": _NUMBER,
    "singleuser.memory.limit": _NUMBER,
    "singleuser.cpu.guarantee": (int, float),
    "singleuser.cpu.limit": (int, float),
    "singleuser.storage.capacity": _TEXT,
    "singleuser.extraEnv": (dict,),
    "singleuser.lifecycleHooks": (dict,),
    "singleuser.extraFiles": (dict,),
    "cull.enabled": (bool,),
    "cull.timeout": (int,),
    "cull.every": (int,),
    "scheduling.podPriority.enabled": (bool,),
    "scheduling.userPlaceholder.replicas": (int,),
    "prePuller.hook.enabled": (bool,),
    "prePuller.continuous.enabled": (bool,),
}
# Of a file in singleuser.extraFiles.
FILE_KEYS = {"mountPath", "data", "stringData", "binaryData", "mode"}


def unknown(values: dict[str, object], above: str = "") -> list[str]:
    """What of ``values`` the chart would refuse: a key that it does not have, or a value of another kind."""
    wrong = []
    for name, value in values.items():
        key = f"{above}.{name}" if above else name
        if key in KEYS:
            kinds = KEYS[key]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                wrong.append(f"{key}: {value!r}")
        elif isinstance(value, dict) and any(known.startswith(f"{key}.") for known in KEYS):
            wrong += unknown(value, key)
        else:
            wrong.append(key)
    return wrong
