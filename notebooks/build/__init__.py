"""The builder: one bilingual source a lesson in, one executed notebook a language out.

``python -m notebooks.build`` from the repository root; ``--help`` lists the rest.
"""
