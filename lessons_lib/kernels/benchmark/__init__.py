"""Kernels predicted, timed and set side by side: ``python -m lessons_lib.kernels.benchmark``."""
