"""The learner's own kernel, run where it can do no harm, and what is wrong with it."""
