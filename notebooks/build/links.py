"""Where a lesson can be opened, and the table of all lessons."""

from __future__ import annotations

from collections.abc import Sequence

from notebooks.build.config import Config
from notebooks.build.read import Audience, Language, Lesson

_TABLE_HEAD: dict[Language, tuple[str, ...]] = {
    "zh": ("课", "分钟", "GPU", "在线打开"),
    "en": ("Lesson", "Minutes", "GPU", "Open online"),
}
_GPU_WORDS: dict[Language, dict[str, str]] = {
    "zh": {"none": "不需要", "optional": "可选", "recommended": "建议有"},
    "en": {"none": "not needed", "optional": "optional", "recommended": "recommended"},
}


def edition_folder(language: Language, audience: Audience = "learner") -> str:
    """Where an edition's notebooks lie, from the repository root."""
    return f"notebooks/{language}" if audience == "learner" else f"notebooks/{audience}/{language}"


def notebook_path(lesson: Lesson, language: Language, audience: Audience = "learner") -> str:
    """The built file, from the repository root."""
    return f"{edition_folder(language, audience)}/{lesson.name}.ipynb"


def runs_in_browser(lesson: Lesson, config: Config) -> bool:
    """Whether the site (``make site``) offers ``lesson`` to run and not only to read."""
    return set(lesson.needs) <= set(config.in_browser)


def browser_path(lesson: Lesson, language: Language) -> str:
    """The page of the site that opens ``lesson`` live, from the site's root."""
    return f"run/lab-{language}/index.html?path={language}/{lesson.name}.ipynb"


def launch_links(lesson: Lesson, language: Language, config: Config) -> list[tuple[str, str]]:
    """``(name, address)`` of each platform; the one most likely to be reachable comes first."""
    path = notebook_path(lesson, language)
    repository, ref = config.repository, config.ref
    modelscope = (
        "ModelScope 魔搭" if language == "zh" else "ModelScope",
        f"https://modelscope.cn/notebook/share/github/{repository}/blob/{ref}/{path}",
    )
    colab = ("Colab", f"https://colab.research.google.com/github/{repository}/blob/{ref}/{path}")
    raw = f"https://raw.githubusercontent.com/{repository}/{ref}/{path}"
    kaggle = ("Kaggle", f"https://kaggle.com/kernels/welcome?src={raw}")
    binder = ("Binder", f"https://mybinder.org/v2/gh/{repository}/{ref}?urlpath=lab/tree/{path}")
    browser = ("浏览器" if language == "zh" else "in the browser", config.site + browser_path(lesson, language))
    first = (modelscope, colab) if language == "zh" else (colab, modelscope)
    return [*first, kaggle, binder, *([browser] if runs_in_browser(lesson, config) else [])]


def launch_line(lesson: Lesson, language: Language, config: Config, limit: int | None = None) -> str:
    """The links in one line of Markdown.

    Plain text, no badge images: a lesson opened in a classroom without a network stays whole, and
    opening one tells no image server about it.
    """
    links = launch_links(lesson, language, config)[:limit]
    return " · ".join(f"[{name}]({address})" for name, address in links)


def gpu_words(lesson: Lesson, language: Language) -> str:
    """Whether the lesson needs a GPU, for people."""
    return _GPU_WORDS[language][lesson.gpu]


def lessons_table(
    lessons: Sequence[Lesson], language: Language, config: Config, folder: str = "", *, online: bool = True
) -> str:
    """A Markdown table of ``lessons``, linked relative to ``folder`` (with its ``/``), and to where they open online."""
    rows = [
        (
            f"[{lesson.title(language)}]({folder}{lesson.name}.ipynb)",
            f"{lesson.minutes:g}",
            gpu_words(lesson, language),
            *([launch_line(lesson, language, config)] if online else []),
        )
        for lesson in lessons
    ]
    head = _TABLE_HEAD[language]
    return table(head if online else head[:-1], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a ``|`` in a cell stays text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
