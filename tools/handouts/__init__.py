"""Each lesson as a sheet of paper: two A4 pages with blanks, and the same pages filled in for the instructor."""
