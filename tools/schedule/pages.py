"""A schedule as a Markdown page, in one language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from notebooks.build.instructor import clock
from notebooks.build.links import table
from notebooks.build.read import Language
from tools.schedule.fit import Sections, expanded, total
from tools.schedule.plan import PLAN, Block, Extra, Schedule
from tools.schedule.sections import Section

_WORDS: dict[str, dict[Language, str]] = {
    "made": {
        "zh": "<!-- 由 python -m tools.schedule 按 {plan} 和课程源文件里的分钟数生成，不要手改。 -->",
        "en": "<!-- Written by python -m tools.schedule from {plan} and the minutes in the lessons; do not edit. -->",
    },
    "time": {"zh": "时间", "en": "time"},
    "min": {"zh": "分钟", "en": "min"},
    "block": {"zh": "内容", "en": "block"},
    "talks": {"zh": "谁在讲", "en": "who talks"},
    "lessons": {"zh": "课", "en": "lessons"},
    "section": {"zh": "小节", "en": "section"},
    "key": {"zh": "编号", "en": "key"},
    "buffer": {"zh": "机动", "en": "buffer"},
    "sum": {"zh": "合计", "en": "sum"},
    "head": {"zh": "{span} {title}（{minutes} 分钟）", "en": "{span} {title} ({minutes} min)"},
    "reserve": {"zh": "机动：{words}", "en": "buffer: {words}"},
    "who": {"zh": "**谁在讲：**{words}。", "en": "**Who talks:** {words}."},
    "prepared": {
        "zh": "**事先跑好，课上不讲：**{keys}。",
        "en": "**Run beforehand, without a word in class:** {keys}.",
    },
    "teacher": {"zh": "**老师：**{words}", "en": "**You:** {words}"},
    "learners": {"zh": "**学员：**{words}", "en": "**Learners:** {words}"},
    "skip": {"zh": "跳过 {keys}，省 {minutes} 分钟。", "en": "leave out {keys} and save {minutes} min."},
    "late": {"zh": "**来不及：**{words}", "en": "**Late?** {words}"},
    "early": {"zh": "**做得快的：**{words}", "en": "**Done early?** {words}"},
    "ahead": {"zh": "{keys}（{minutes} 分钟）。", "en": "{keys} ({minutes} min)."},
    "extras": {"zh": "不占这段时间的", "en": "Outside these minutes"},
    "extra": {"zh": "{title}（{minutes} 分钟）", "en": "{title} ({minutes} min)"},
    "total": {
        "zh": "一共 {minutes} 分钟：课里的小节 {taught} 分钟，机动和休息 {buffer} 分钟。",
        "en": "{minutes} minutes in all: {taught} of the lessons, {buffer} of buffer and breaks.",
    },
}
_TALKS: dict[str, dict[Language, str]] = {
    "teacher": {"zh": "老师", "en": "you"},
    "learners": {"zh": "学员", "en": "the learners"},
    "both": {"zh": "老师和学员", "en": "you and the learners"},
    "break": {"zh": "休息", "en": "nobody: a break"},
}


def page(schedule: Schedule, sections: Sections, language: Language) -> str:
    """The whole page; ``schedule`` has no faults."""
    taught = total(section for block in schedule.blocks for section in expanded(block.sections, sections))
    buffer = sum(block.buffer for block in schedule.blocks)
    summary = _say("total", language, minutes=schedule.minutes, taught=f"{taught:g}", buffer=buffer)
    parts = [
        _say("made", language, plan=PLAN),
        f"# {schedule.title[language]}",
        schedule.opening[language],
        _overview(schedule, sections, language),
        summary,
    ]
    start = 0
    for block in schedule.blocks:
        parts.append(_block(block, start, sections, language))
        start += block.minutes
    if schedule.extras:
        parts.append(f"## {_say('extras', language)}")
        parts += [_extra(extra, sections, language) for extra in schedule.extras]
    return "\n\n".join(parts) + "\n"


def _overview(schedule: Schedule, sections: Sections, language: Language) -> str:
    head = [_say(name, language) for name in ("time", "min", "block", "talks", "lessons")]
    rows = []
    start = 0
    for block in schedule.blocks:
        numbers = dict.fromkeys(section.key[:2] for section in expanded(block.sections, sections))
        talks = _TALKS[block.leads][language]
        span = _span(start, block)
        rows.append((span, str(block.minutes), block.title[language], talks, ", ".join(numbers) or "–"))
        start += block.minutes
    rows.append((clock(start), f"**{start}**", f"**{_say('sum', language)}**", "", ""))
    return table(head, rows)


def _block(block: Block, start: int, sections: Sections, language: Language) -> str:
    span = _span(start, block)
    parts = [f"## {_say('head', language, span=span, title=block.title[language], minutes=block.minutes)}"]
    if block.sections or block.leads != "break":
        parts.append(_minutes(block, start, sections, language))
    lines = [_say("who", language, words=_TALKS[block.leads][language])] if block.leads != "break" else []
    if block.prepared:
        lines.append(_say("prepared", language, keys=_keys(expanded(block.prepared, sections), language)))
    lines += [
        _say(name, language, words=words[language])
        for name, words in (("teacher", block.teacher), ("learners", block.learners))
        if words[language]
    ]
    lines += _advice("late", "skip", block.skip, block.late, sections, language)
    lines += _advice("early", "ahead", block.ahead, block.early, sections, language)
    return "\n\n".join([*parts, "\n".join(f"- {line}" for line in lines)] if lines else parts)


def _minutes(block: Block, start: int, sections: Sections, language: Language) -> str:
    """The sections of a block and its buffer, each with the minute at which it begins."""
    head = [_say(name, language) for name in ("time", "section", "key", "min")]
    lines = [
        (
            f"[{_cell(section.titles[language])}](../../notebooks/{language}/{section.lesson}.ipynb)",
            f"`{section.key}`",
            section.minutes,
        )
        for section in expanded(block.sections, sections)
    ]
    if block.buffer:
        words = _say("reserve", language, words=block.reserve[language])
        lines.insert(0 if block.buffer_first else len(lines), (words, "", block.buffer))
    rows = []
    now: float = start
    for words, key, minutes in lines:
        rows.append((clock(now), words, key, f"{minutes:g}"))
        now += minutes
    rows.append((clock(start + block.minutes), f"**{_say('sum', language)}**", "", f"**{block.minutes}**"))
    return table(head, rows)


def _advice(
    name: str,
    which: str,
    keys: Iterable[str],
    words: Mapping[Language, str],
    sections: Sections,
    language: Language,
) -> list[str]:
    found = expanded(keys, sections)
    said = [words[language]] if words[language] else []
    if found:
        said.insert(0, _say(which, language, keys=_keys(found, language), minutes=f"{total(found):g}"))
    joint = "" if language == "zh" else " "
    return [_say(name, language, words=joint.join(_capital(part) for part in said))] if said else []


def _extra(extra: Extra, sections: Sections, language: Language) -> str:
    found = expanded(extra.sections, sections)
    head = f"### {_say('extra', language, title=extra.title[language], minutes=f'{total(found):g}')}"
    links = {
        section.lesson: f"[{section.key[:2]}](../../notebooks/{language}/{section.lesson}.ipynb)" for section in found
    }
    whole = any(key.endswith("/*") for key in extra.sections)
    named = ", ".join(links.values()) if whole else _keys(found, language)
    return f"{head}\n\n{extra.words[language]}\n\n{named}"


def _keys(sections: Iterable[Section], language: Language) -> str:
    return ("、" if language == "zh" else ", ").join(f"`{section.key}`" for section in sections)


def _span(start: int, block: Block) -> str:
    return f"{clock(start)}–{clock(start + block.minutes)}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _cell(words: str) -> str:
    """Words that may stand in a table and in a link."""
    return words.replace("[", "(").replace("]", ")")


def _say(name: str, language: Language, **values: object) -> str:
    return _WORDS[name][language].format(**values)
