"""Cut this process off from the network, then run notebooks in their own folders, as a learner would.

    python offline_runner.py notebook.ipynb ...        after `unshare --net`, or with the guard below on PYTHONPATH

A script, run by ``test_offline_bundle.py`` in a clean environment; prints what each first code cell printed.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from pathlib import Path

# A sitecustomize.py for machines that do not let us take a network of our own: every Python started below meets it.
GUARD = """
import socket
_connect, _look_up = socket.socket.connect, socket.getaddrinfo
_HERE = ("127.", "::1", "localhost")
def _check(host):
    if isinstance(host, (str, bytes)) and not str(host).strip("b'").startswith(_HERE):
        raise OSError(101, f"the network is cut off: {host}")
def connect(self, address):
    if self.family != getattr(socket, "AF_UNIX", None):
        _check(address[0])
    return _connect(self, address)
def look_up(host, *arguments, **options):
    if host:
        _check(host)
    return _look_up(host, *arguments, **options)
socket.socket.connect, socket.getaddrinfo = connect, look_up
"""


def raise_loopback() -> None:
    """A new network has its own loopback, switched off: kernels need it."""
    import fcntl

    up_and_running = 0x1 | 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", up_and_running))  # SIOCSIFFLAGS


def assert_cut_off() -> None:
    for address in (("pypi.org", 443), ("192.0.2.1", 443), ("1.1.1.1", 53)):
        try:
            socket.create_connection(address, timeout=5).close()
        except TimeoutError:
            sys.exit(f"{address}: no refusal, only silence; is the network cut off?")
        except OSError:
            continue
        sys.exit(f"{address} can be reached: the network is not cut off")


def execute(path: Path) -> str:
    """Run a notebook where it lies; what its first code cell printed. Ends this process if a cell fails."""
    sys.path.insert(0, str(Path(__file__).parents[2]))  # this process's own path, which the notebook does not see
    from tools.run_notebooks import run

    notebook, faults = run(path)
    if faults:
        sys.exit("\n".join(faults))
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    return "".join(output.get("text", "") for output in first.outputs)


def main() -> None:
    if os.environ.get("CUT") == "unshare":
        raise_loopback()
    assert_cut_off()
    print(json.dumps({path: execute(Path(path)) for path in sys.argv[1:]}))


if __name__ == "__main__":
    main()
