"""The grouping that moves the fewest bytes, with a proof."""
