"""Schedules for teaching the course, which add themselves up from the minutes in the lessons' sources."""
