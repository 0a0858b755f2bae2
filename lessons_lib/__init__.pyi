from .base.environment import environment as environment, free_memory_bytes as free_memory_bytes
from .base.language import current_language as current_language, use_language as use_language
from .base.roofline import (
    Interval as Interval,
    compute_bound_k as compute_bound_k,
    epilogue_speedup as epilogue_speedup,
    kernel_interval as kernel_interval,
    program_interval as program_interval,
    speedup_interval as speedup_interval,
)
from .base.units import format_bytes as format_bytes, format_seconds as format_seconds
from .decision.model import fusion_decision as fusion_decision
from .reuse.model import onchip_reuse as onchip_reuse
from .show.machine import machine_report as machine_report
from .traffic.epilogue import epilogue_plans as epilogue_plans
from .traffic.exercises import (
    check_swiglu_saved as check_swiglu_saved,
    check_total_bytes as check_total_bytes,
    lab_vote as lab_vote,
    traffic_quiz as traffic_quiz,
    traffic_vote as traffic_vote,
)
from .traffic.lab import measure_chain as measure_chain
from .traffic.model import (
    Operator as Operator,
    best_cuts as best_cuts,
    boundary_traffic as boundary_traffic,
    chain_traffic as chain_traffic,
    fusion_traffic as fusion_traffic,
    plan_traffic as plan_traffic,
)
from .traffic.panel import EpiloguePanel as EpiloguePanel, TrafficPanel as TrafficPanel
from .traffic.report import lab_report as lab_report
