"""What pip printed decides what the learner is told to do. The texts are pip's own, as seen."""

import pytest

from tools.pip_run import PipError, explained

DISK = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
OFFLINE = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3."
    "connection.HTTPSConnection object>: Failed to establish a new connection: [Errno -3] Temporary failure')'\n"
    "ERROR: Could not find a version that satisfies the requirement numpy (from versions: none)"
)
PROXY = "WARNING: Retrying after connection broken by 'ProxyError('Cannot connect to proxy.', OSError('Tunnel'))'"
SLOW = "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='x', port=443): Read timed out."
CONFLICT = "ERROR: Cannot install a==1 because these package versions have conflicting dependencies."


@pytest.mark.parametrize("output", [OFFLINE, PROXY, SLOW])
def test_no_network_names_the_mirror_and_a_retry(output):
    stop = explained(output)
    assert "PIP_INDEX_URL=" in stop.zh and "PIP_INDEX_URL=" in stop.en
    assert "again" in stop.en and "再运行" in stop.zh


def test_a_full_disk_is_said_even_after_network_trouble():
    stop = explained(OFFLINE + DISK)
    assert "disk is full" in stop.en and "磁盘满了" in stop.zh
    assert PipError(DISK).disk_is_full and not PipError(OFFLINE).disk_is_full


def test_anything_else_shows_pips_own_last_lines(capsys):
    stop = explained("first\n" * 30 + CONFLICT)
    assert "mirror" not in stop.en
    shown = capsys.readouterr().out
    assert CONFLICT in shown and shown.count("first") < 30
