"""From PyTorch: what a function does, as a graph, and what Inductor makes of it."""
