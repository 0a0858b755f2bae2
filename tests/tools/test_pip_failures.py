"""What pip printed decides what is done or told next. The texts are pip's own, as seen."""

from pathlib import Path

import pytest

from tools import pip_run
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


@pytest.fixture
def answers(monkeypatch):
    """pip that answers a question as the test says: with a report, or with an error for some arguments."""
    asked = []

    def answer(error=None, only_if=""):
        def pip(arguments, python, show):
            asked.append(arguments)
            if error and any(only_if in argument for argument in arguments):
                raise PipError(error)
            Path(arguments[arguments.index("--report") + 1]).write_text('{"install": ["x"]}', encoding="utf-8")

        monkeypatch.setattr(pip_run, "pip", pip)
        return asked

    return answer


def test_a_question_installs_nothing_and_reads_parts_of_wheels(answers):
    asked = answers()
    assert pip_run.report(["torch"]) == {"install": ["x"]}
    assert len(asked) == 1 and {"--dry-run", "--use-feature=fast-deps", "torch"} <= set(asked[0])


def test_a_pip_that_no_longer_has_that_feature_is_asked_without_it(answers):
    asked = answers("pip: error: argument --use-feature: invalid choice: 'fast-deps'", only_if="fast-deps")
    assert pip_run.report(["torch"]) == {"install": ["x"]}
    assert ["--use-feature=fast-deps" in arguments for arguments in asked] == [True, False]


def test_any_other_failure_of_a_question_is_not_asked_again(answers):
    asked = answers(f"WARNING: --use-feature=fast-deps is not ready for production\n{OFFLINE}")
    with pytest.raises(PipError):
        pip_run.report(["torch"])
    assert len(asked) == 1
