"""What learners see: panels, pictures, tables, exercises, quizzes. Only this floor knows ipywidgets and drawsvg."""
