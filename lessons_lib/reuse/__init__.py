"""Q2: what fits on chip, and what that saves."""
