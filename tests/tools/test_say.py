import errno

import pytest

from tools import say


def ending(main):
    with pytest.raises(SystemExit) as end:
        say.run(main)
    return end.value.code


def stopping():
    raise say.Stop("做这个", "do this")


def interrupted():
    raise KeyboardInterrupt


def test_a_stop_is_told_in_both_languages_and_fails(capsys):
    assert ending(stopping) == 1
    told = capsys.readouterr().err
    assert "做这个" in told and "do this" in told


def test_an_interruption_says_that_it_can_be_run_again(capsys):
    assert ending(interrupted) == 130
    told = capsys.readouterr().err
    assert "again" in told and "再运行" in told


def test_the_exit_code_is_the_tools(capsys):
    assert ending(lambda: 7) == 7


def test_progress_speaks_the_editions_language(capsys, monkeypatch):
    monkeypatch.setattr(say, "_edition", "en")
    say.tell("一", "one")
    say.use_edition("zh")
    say.tell("二", "two")
    assert capsys.readouterr().out == "one\n二\n"


@pytest.mark.parametrize(
    ("number", "zh", "en"),
    [
        (errno.ENOSPC, "磁盘满了", "disk is full"),
        (errno.EACCES, "没有权限", "Not allowed"),
        (errno.EROFS, "没有权限", "Not allowed"),
    ],
)
def test_a_full_disk_and_a_closed_folder_are_told_in_both_languages(capsys, number, zh, en):
    def main():
        raise OSError(number, "why", "/some/file")

    assert ending(main) == 1
    told = capsys.readouterr().err
    assert zh in told and en in told


def test_an_error_of_the_tools_own_keeps_its_trace():
    def main():
        raise FileNotFoundError(errno.ENOENT, "why", "/some/file")

    with pytest.raises(FileNotFoundError):
        say.run(main)
