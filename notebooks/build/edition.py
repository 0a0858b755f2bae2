# mypy: untyped-calls-exclude=nbformat
"""From a lesson to a notebook: one language, one audience, nothing executed yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nbformat
from nbformat import NotebookNode

from notebooks.build.bootstrap import METADATA as BOOTSTRAP_METADATA, bootstrap_source
from notebooks.build.course import Course
from notebooks.build.instructor import BOX, aside, box, prepare, timed
from notebooks.build.placeholders import fill
from notebooks.build.read import BOOTSTRAP, Audience, Cell, Language, Lesson, Twins

_SOLUTION_SUMMARY: dict[Language, str] = {
    "zh": "参考答案（先自己试一试）",
    "en": "A solution (try it yourself first)",
}


def edition(lesson: Lesson, language: Language, audience: Audience, course: Course) -> NotebookNode:
    """``lesson`` as a notebook for ``audience`` in ``language``.

    A learner gets every exercise as a skeleton with its solution folded away; an instructor gets the solution run in
    the exercise's place, the cells tagged ``instructor``, each section's minutes, and a box with what to prepare.
    """
    cells = [_node(block, lesson, language, audience, course) for block in _selected(lesson, audience)]
    if audience == "instructor":
        cells.insert(1, _markdown(BOX, box(lesson, language)))
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata=_notebook_metadata(lesson))
    notebook.nbformat_minor = 5
    nbformat.validate(notebook)
    return notebook


def _selected(lesson: Lesson, audience: Audience) -> Iterator[Twins | Cell]:
    """The blocks that ``audience`` sees."""
    for block in lesson.blocks:
        if audience == "learner":
            if "instructor" not in block.tags:
                yield block
        elif isinstance(block, Cell) and "exercise" in block.tags:
            yield lesson.solution_of(block) or block
        elif "solution" not in block.tags and block is not prepare(lesson):
            yield block


def _node(
    block: Twins | Cell, lesson: Lesson, language: Language, audience: Audience, course: Course
) -> NotebookNode:
    if isinstance(block, Twins):
        source = fill(block[language].source, lesson, language, audience, course)
        if audience == "instructor":
            source = aside(source) if "instructor" in block.tags else timed(source, block, lesson, language)
        return _markdown(block.id, source, block.tags)
    if block.id == BOOTSTRAP:
        return _code(block.id, bootstrap_source(language, course.config, lesson.needs), BOOTSTRAP_METADATA)
    if "solution" in block.tags and audience == "learner":
        return _markdown(block.id, _folded(block.source, language))
    return _code(block.id, block.source, _with_tags(block.tags))


def _markdown(cell_id: str, source: str, tags: tuple[str, ...] = ()) -> NotebookNode:
    cell: NotebookNode = nbformat.v4.new_markdown_cell(source, id=cell_id, metadata=_with_tags(tags))
    return cell


def _code(cell_id: str, source: str, metadata: dict[str, Any]) -> NotebookNode:
    cell: NotebookNode = nbformat.v4.new_code_cell(source, id=cell_id, metadata=metadata)
    return cell


def _with_tags(tags: tuple[str, ...]) -> dict[str, Any]:
    """The tags as metadata. An expected error gets the tag that Jupyter's "Run All" and nbval both know."""
    known = ["raises-exception" if tag == "nbval-raises-exception" else tag for tag in tags]
    return {"tags": known} if known else {}


def _folded(code: str, language: Language) -> str:
    return f"<details>\n<summary>{_SOLUTION_SUMMARY[language]}</summary>\n\n```python\n{code}\n```\n\n</details>"


def _notebook_metadata(lesson: Lesson) -> dict[str, Any]:
    """The same on every machine: no version of Python, no kernel but ``python3``."""
    metadata: dict[str, Any] = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {
            "file_extension": ".py",
            "mimetype": "text/x-python",
            "name": "python",
            "pygments_lexer": "ipython3",
        },
    }
    if lesson.gpu == "recommended":
        metadata |= {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    return metadata
