"""Lesson 04: a model as a graph of operators, which of them share a kernel, and what that moves."""
