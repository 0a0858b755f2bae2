from .base.environment import environment as environment, free_memory_bytes as free_memory_bytes
from .base.gpus import GPUS as GPUS, Gpu as Gpu
from .base.language import current_language as current_language, use_language as use_language
from .base.progress import export_progress as export_progress
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
from .graph.canvas import GraphCanvas as GraphCanvas
from .graph.capture.capture import capture as capture, fake as fake
from .graph.capture.compiler import inductor_grouping as inductor_grouping
from .graph.capture.zoo import zoo_block as zoo_block
from .graph.comparison import compare_groupings as compare_groupings, comparison_report as comparison_report
from .graph.exercises import (
    check_kernel_mib as check_kernel_mib,
    compiler_vote as compiler_vote,
    graph_quiz as graph_quiz,
    graph_vote as graph_vote,
)
from .graph.explain import explain as explain
from .graph.opgraph import GraphOp as GraphOp, OpGraph as OpGraph, tensor_of as tensor_of
from .graph.planning.planner import best_grouping as best_grouping
from .graph.puzzles.panel import PuzzlePanel as PuzzlePanel
from .graph.recorded import recorded_block as recorded_block, recorded_names as recorded_names
from .graph.study import recorded_study as recorded_study, study_model as study_model
from .kernels.benchmark.cpu_lab import measure_on_cpu as measure_on_cpu
from .kernels.benchmark.cpu_report import cpu_report as cpu_report
from .kernels.benchmark.model_lab import measure_model as measure_model
from .kernels.benchmark.model_report import model_report as model_report, model_verdict as model_verdict
from .kernels.benchmark.plot import benchmark_plot as benchmark_plot
from .kernels.benchmark.report import benchmark_report as benchmark_report
from .kernels.benchmark.run import measure_kernels as measure_kernels
from .kernels.benchmark.runs import recorded_runs as recorded_runs
from .kernels.benchmark.verdict import measurement_verdict as measurement_verdict
from .kernels.chain import chain_reference as chain_reference, fused_chain as fused_chain
from .kernels.compiler.panel import CompilerPanel as CompilerPanel
from .kernels.compiler.report import compile_report as compile_report, report_table as report_table
from .kernels.epilogue import fused_epilogue as fused_epilogue
from .kernels.evidence import gather_evidence as gather_evidence
from .kernels.exercises import (
    check_fused_bytes as check_fused_bytes,
    kernel_quiz as kernel_quiz,
    kernel_vote as kernel_vote,
    losing_vote as losing_vote,
)
from .kernels.gate.checker import check_bias_silu_gate as check_bias_silu_gate
from .kernels.lesson_language import tl as tl, triton as triton
from .kernels.linear import fused_linear as fused_linear, library_linear as library_linear
from .kernels.losing_report import losing_report as losing_report
from .kernels.mode import prepare_triton as prepare_triton
from .kernels.row import fused_residual_rmsnorm as fused_residual_rmsnorm, fused_softmax as fused_softmax
from .kernels.walk_panel import TileWalkPanel as TileWalkPanel
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
from .reuse.sweep_report import sweep_report as sweep_report, sweep_verdict as sweep_verdict
from .show.machine import machine_report as machine_report
from .show.workshop import workshop as workshop
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
from .traffic.report import chain_verdict as chain_verdict, lab_report as lab_report
