"""The class report: a folder of learners' exported results, drawn for the teacher. ``python -m lessons_lib.classroom``."""
