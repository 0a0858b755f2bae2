"""Q1: how intermediate tensors add logical reads and writes."""
