from .base.environment import environment as environment, free_memory_bytes as free_memory_bytes
from .base.gpus import GPUS as GPUS, Gpu as Gpu
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
from .decision.courtroom import Trial as Trial, court_record as court_record
from .decision.evidence import examine as examine, try_case as try_case
from .decision.exercises import (
    check_break_even as check_break_even,
    check_net_bytes as check_net_bytes,
    decision_quiz as decision_quiz,
    veto_vote as veto_vote,
)
from .decision.ledger import compile_ledger as compile_ledger, layout_ledger as layout_ledger
from .decision.model import Evidence as Evidence, decide as decide, fusion_decision as fusion_decision
from .decision.panel import CompilePanel as CompilePanel, DecisionPanel as DecisionPanel, LayoutPanel as LayoutPanel
from .reuse.attention import attention_traffic as attention_traffic
from .reuse.exercises import (
    check_avoided_bytes as check_avoided_bytes,
    check_gemm_tile_kib as check_gemm_tile_kib,
    reuse_quiz as reuse_quiz,
    reuse_vote as reuse_vote,
    tile_vote as tile_vote,
)
from .reuse.gemm import (
    accumulator_registers as accumulator_registers,
    gemm_traffic as gemm_traffic,
    resident_buffers as resident_buffers,
    tile_operand_bytes as tile_operand_bytes,
)
from .reuse.lab import sweep_tiles as sweep_tiles
from .reuse.model import (
    compare_reuse as compare_reuse,
    onchip_reuse as onchip_reuse,
    produced_reuse as produced_reuse,
    retile as retile,
)
from .reuse.occupancy import occupancy as occupancy
from .reuse.panel import ReusePanel as ReusePanel
from .reuse.rows import rmsnorm_traffic as rmsnorm_traffic, softmax_traffic as softmax_traffic
from .reuse.sweep_report import sweep_report as sweep_report
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
