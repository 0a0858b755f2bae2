"""A class on a cluster: values for the Zero to JupyterHub chart, and the link that opens each lesson there."""
