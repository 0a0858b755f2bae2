"""How fast the course is and how we know: ``python -m benchmarks`` measures and writes ``RESULTS.md``."""
