"""The ground floor: pure Python, standard library only."""
