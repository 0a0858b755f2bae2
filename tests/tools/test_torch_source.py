import pytest

from tools import environment, torch_source
from tools.pip_run import PipError
from tools.torch_source import Source, brings_cuda, choose


def item(name, *requires):
    return {"metadata": {"name": name, "requires_dist": list(requires)}}


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
def torch_install(monkeypatch):
    """`_install_torch` on a Linux machine without GPU, with pip's answers made up: (of the index, of the rest)."""

    def run(from_index, from_rest, gpu=False):
        installs = []

        def report(arguments):
            answer = from_index if "--index-url" in arguments else from_rest
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(environment.torch_source, "choose_here", lambda extras: Source.INDEX)
        monkeypatch.setattr(torch_source, "has_nvidia_gpu", lambda: gpu)
        monkeypatch.setattr(environment, "report", report)
        monkeypatch.setattr(environment, "pip", installs.append)
        done = environment._install_torch("torch==2.13.0", ["graph"])
        return done, [call for call in installs if "torch==2.13.0" in call]

    return run


def test_the_index_serves_first_without_retries(torch_install):
    done, (install,) = torch_install(CPU, CUDA)
    assert done and torch_source.CPU_INDEX in install
    assert install[install.index("--retries") + 1] == "0"


def test_an_unreachable_index_falls_through_to_an_ordinary_build_without_cuda(torch_install):
    done, (install,) = torch_install(PipError("no network"), CPU)
    assert done and "--index-url" not in install


def test_cuda_is_never_installed_without_a_gpu(torch_install):
    assert torch_install(PipError("no network"), CUDA) == (False, [])
    assert torch_install(CUDA, CUDA) == (False, [])


def test_a_named_index_may_bring_cuda_to_a_gpu(torch_install):
    done, installs = torch_install(CUDA, CUDA, gpu=True)
    assert done and len(installs) == 1


def test_a_full_disk_is_no_reason_to_leave_torch_out(torch_install):
    with pytest.raises(PipError):
        torch_install(PipError("No space left on device"), CPU)
