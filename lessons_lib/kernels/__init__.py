"""Lesson 05: fused Triton kernels, what a compiler says about them, and what a device measures."""
