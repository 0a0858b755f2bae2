"""Q3: which conditions come first, and which costs must be measured."""
