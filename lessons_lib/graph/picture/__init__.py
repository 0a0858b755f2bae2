"""The picture of a graph: places that no grouping moves, and what is drawn there."""
