"""What differs between the two editions of the site, and which lessons run in a browser."""

from __future__ import annotations

from dataclasses import dataclass, replace

from notebooks.build.course import Course
from notebooks.build.links import notebook_path
from notebooks.build.read import LANGUAGES, Language, Lesson

EDITIONS: tuple[Language, ...] = LANGUAGES


@dataclass(frozen=True)
class Words:
    """What the pages say around the lessons, in one language."""

    tag: str
    locale: str
    course: str
    tagline: str
    intro: str
    steps: tuple[tuple[str, str], ...]
    lessons: str
    minutes: str
    minutes_label: str
    run: str
    run_hint: str
    read: str
    only_read: str
    other: str
    own_machine: str
    own_machine_how: str
    licence: str
    skip: str
    top: str
    still: str
    still_link: str
    as_text: str
    setup: str
    picture: str


WORDS: dict[Language, Words] = {
    "zh": Words(
        tag="zh-CN",
        locale="zh_CN",
        course="动手学算子融合",
        tagline="少搬一次数据，到底快多少？",
        intro="深度学习编译器为什么要把几个算子放进同一个核函数，能省多少，为什么有时并不更快。不需要 GPU，也不用安装。",
        steps=(
            ("预测", "先用公式算出读写量、启动次数和耗时区间。"),
            ("动手", "拖动滑块，看张量怎样留在片上。"),
            ("实测", "在自己的机器上量，再说清差在哪里、为什么。"),
        ),
        lessons="课程",
        minutes="{minutes} 分钟",
        minutes_label="用时",
        run="在浏览器里运行",
        run_hint="第一次打开要下载约 15 MB 的 Python，之后由浏览器缓存。笔记本存在你自己的浏览器里。用到 NumPy 的实测需要联网。",
        read="阅读",
        only_read="这一课要用 PyTorch，请在自己的机器上或 Colab 等平台上运行",
        other="English",
        own_machine="在自己的机器上",
        own_machine_how="Linux 或 macOS，Python 3.10 及以上。下载 {repository}，然后：",
        licence="代码 Apache-2.0，文字 CC BY 4.0",
        skip="跳到正文",
        top="全部课程",
        still="这是静止的图。",
        still_link="在浏览器里运行，亲手动一动",
        as_text="文字版",
        setup="准备课程库的代码",
        picture="四个算子放进两个核函数：t2 要进出显存，t1 和 t3 留在片上。",
    ),
    "en": Words(
        tag="en",
        locale="en",
        course="Operator fusion, hands on",
        tagline="One trip to memory less: how much faster is that?",
        intro="Why a deep-learning compiler puts several operators into one kernel, how much that saves, and why it is "
        "sometimes no faster. No GPU needed, nothing to install.",
        steps=(
            ("Predict", "Traffic, launches and an interval, from a formula."),
            ("Move", "Drag a slider and watch a tensor stay on chip."),
            ("Measure", "On your own machine, with a reason for every gap."),
        ),
        lessons="Lessons",
        minutes="{minutes} minutes",
        minutes_label="Time",
        run="Run in the browser",
        run_hint="The first visit downloads about 15 MB of Python, which the browser then keeps. Your notebooks stay in "
        "your own browser. Labs that use NumPy need the network.",
        read="Read",
        only_read="This lesson uses PyTorch: run it on your own machine, or on Colab and the like",
        other="中文",
        own_machine="On your own machine",
        own_machine_how="Linux or macOS with Python 3.10 or newer. Get {repository}, then:",
        licence="Code Apache-2.0, prose CC BY 4.0",
        skip="Skip to the text",
        top="All lessons",
        still="This picture stands still.",
        still_link="Run it in the browser and move it",
        as_text="As text",
        setup="Code that gets the library ready",
        picture="Four operators in two kernels: t2 passes through memory, t1 and t3 stay on chip.",
    ),
}


def other(language: Language) -> Language:
    return "en" if language == "zh" else "zh"


def built(course: Course) -> Course:
    """``course`` with only the lessons that are built in both languages."""

    def is_built(lesson: Lesson) -> bool:
        return all((course.root / notebook_path(lesson, language)).is_file() for language in EDITIONS)

    return replace(course, lessons=tuple(filter(is_built, course.lessons)))
