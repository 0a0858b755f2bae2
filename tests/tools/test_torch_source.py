from pathlib import Path

import pytest

from tools import torch_install, torch_source
from tools.pip_run import PipError
from tools.torch_source import Source, brings_cuda, choose


def item(name, *requires):
    return {"metadata": {"name": name, "requires_dist": list(requires)}}


PYTHON = Path("somewhere/bin/python")
CPU = {"install": [item("torch", "sympy", 'nvidia-cublas ; extra == "cuda"')]}
CUDA = {"install": [item("torch", "sympy", "nvidia-cudnn-cu13==9.2 ; platform_system == 'Linux'")]}


@pytest.mark.parametrize(
    ("extras", "system", "machine", "gpu", "named", "source"),
    [
        (["lab", "dev"], "Linux", "x86_64", False, False, Source.NOT_NEEDED),
        (["lab", "graph"], "Linux", "x86_64", False, False, Source.INDEX),
        (["kernel"], "Linux", "aarch64", False, False, Source.INDEX),
        (["graph"], "Linux", "x86_64", True, False, Source.ORDINARY),
        (["graph"], "Linux", "x86_64", True, True, Source.INDEX),
        (["graph"], "Darwin", "arm64", False, False, Source.ORDINARY),
        (["graph"], "Darwin", "x86_64", False, False, Source.NONE_EXISTS),
        (["graph"], "Windows", "AMD64", False, False, Source.ORDINARY),
    ],
)
def test_where_torch_comes_from(extras, system, machine, gpu, named, source):
    assert choose(extras, system, machine, gpu, named) is source


def test_a_cuda_build_is_known_by_what_it_asks_for_and_by_what_comes_along():
    assert brings_cuda(CUDA)
    assert brings_cuda({"install": [item("torch"), item("nvidia-nccl-cu13")]})
    assert brings_cuda({"install": [item("torch", "cuda-toolkit[cublas]==13.0")]})
    assert not brings_cuda(CPU)
    assert not brings_cuda({"install": []})


@pytest.fixture
def attempt(monkeypatch):
    """`install_torch` on a Linux machine without GPU, with pip's answers made up: (of the index, of the rest)."""

    def run(from_index, from_rest, gpu=False):
        installs = []

        def report(arguments, python):
            answer = from_index if "--index-url" in arguments else from_rest
            if isinstance(answer, Exception):
                raise answer
            return answer

        def pip(arguments, python):
            assert python == PYTHON
            installs.append(arguments)

        monkeypatch.setattr(torch_source, "choose_here", lambda extras: Source.INDEX)
        monkeypatch.setattr(torch_source, "has_nvidia_gpu", lambda: gpu)
        monkeypatch.setattr(torch_install, "report", report)
        monkeypatch.setattr(torch_install, "pip", pip)
        done = torch_install.install_torch(PYTHON, "torch==2.13.0", ["graph"])
        return done, [call for call in installs if "torch==2.13.0" in call]

    return run


def test_the_index_serves_first_without_retries(attempt):
    done, (install,) = attempt(CPU, CUDA)
    assert done and torch_source.CPU_INDEX in install
    assert install[install.index("--retries") + 1] == "0"


def test_an_unreachable_index_falls_through_to_an_ordinary_build_without_cuda(attempt):
    done, (install,) = attempt(PipError("no network"), CPU)
    assert done and "--index-url" not in install


def test_cuda_is_never_installed_without_a_gpu(attempt):
    assert attempt(PipError("no network"), CUDA) == (False, [])
    assert attempt(CUDA, CUDA) == (False, [])


def test_a_named_index_may_bring_cuda_to_a_gpu(attempt):
    done, installs = attempt(CUDA, CUDA, gpu=True)
    assert done and len(installs) == 1


def test_a_full_disk_is_no_reason_to_leave_torch_out(attempt):
    with pytest.raises(PipError):
        attempt(PipError("No space left on device"), CPU)


@pytest.mark.parametrize(("done", "extras"), [(True, ("lab", "kernel", "dev")), (False, ("lab", "dev"))])
def test_extras_that_need_torch_go_as_a_whole_with_it(monkeypatch, tmp_path, done, extras):
    asked = []

    def install(python, requirement, extras):
        asked.append(requirement)
        return done

    monkeypatch.setattr(torch_install, "install_torch", install)
    (tmp_path / "pins.txt").write_text("torch==2.13.0\n")
    assert torch_install.obtainable(PYTHON, ("lab", "kernel", "dev"), tmp_path / "pins.txt") == extras
    assert asked == ["torch==2.13.0"]
