"""A GEMM with bias and GELU behind it: checkpoints 4 to 6, through the model and through the panel."""

from __future__ import annotations

import pytest

from lessons_lib import EpiloguePanel, epilogue_speedup, speedup_interval
from lessons_lib.base.gpus import A100, T4, Gpu
from lessons_lib.traffic.epilogue import epilogue_plans


def test_checkpoint_4_bytes() -> None:
    plans = epilogue_plans(4096, 1024, 4096, A100)
    assert {n: plan.traffic["total_bytes"] for n, plan in plans.items()} == {3: 184557568, 2: 117448704, 1: 50339840}


def test_checkpoint_5_time_is_an_interval() -> None:
    plans = epilogue_plans(4096, 1024, 4096, A100)
    from_three = speedup_interval(plans[3].time, plans[1].time)
    assert (from_three.low, from_three.high) == pytest.approx((1.606, 1.784), abs=0.001)
    assert speedup_interval(plans[2].time, plans[1].time).high == pytest.approx(1.392, abs=0.001)


@pytest.mark.parametrize("gpu", [A100, T4])
@pytest.mark.parametrize("k", [1024, 4096, 16384])
def test_checkpoint_6_closed_form(gpu: Gpu, k: int) -> None:
    plans = epilogue_plans(4096, k, 4096, gpu)
    closed = epilogue_speedup(k, gpu.tensor_flops, gpu.bandwidth)
    # The model also counts the 8 KiB bias, which the closed form leaves out.
    assert plans[3].time.low / plans[1].time.low == pytest.approx(closed, rel=1e-3)


def test_a_launch_costs_only_when_asked_to() -> None:
    free, dear = epilogue_plans(64, 64, 64, A100), epilogue_plans(64, 64, 64, A100, launch_seconds=1e-5)
    for count in (3, 2, 1):
        assert dear[count].time.low - free[count].time.low == pytest.approx(count * 1e-5)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, True, 1), (1, 1, 2.0)])
def test_bad_sizes_are_named(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"^参数 [mkn] "):
        epilogue_plans(*sizes, gpu=A100)


def test_the_panel_follows_every_control() -> None:
    panel = EpiloguePanel()
    for name, value in {"k": 16384, "launch_us": 20, "gpu": "T4"}.items():
        before = panel.static_forms()
        setattr(panel, name, value)
        assert panel.static_forms()["image/svg+xml"] != before["image/svg+xml"]
        assert panel.static_forms()["text/plain"] != before["text/plain"]
    with pytest.raises(ValueError, match="gpu"):
        panel.gpu = "T5"
