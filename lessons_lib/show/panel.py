"""The one panel class of the course: controls above, a picture, a table; every control is a model parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from lessons_lib.base.language import language_tag
from lessons_lib.base.text import Text
from lessons_lib.base.validate import require_choice
from lessons_lib.show.controls import accepted_value, control_row, html_view
from lessons_lib.show.gate import guess_gate, opened_widgets
from lessons_lib.show.live import LiveBox
from lessons_lib.show.table import Table


class Parameter:
    """A panel's attribute that is a control: reading it gives the control's value, setting it moves the control.

    Args:
        build: makes the control when the panel is made, so that its label is in the edition's language.
    """

    def __init__(self, build: Callable[[], Any]) -> None:
        self.build = build

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, panel: Panel | None, owner: type | None = None) -> Any:
        return self if panel is None else panel.controls[self.name].value

    def __set__(self, panel: Panel, value: object) -> None:
        panel.set(**{self.name: value})


class Panel(LiveBox):
    """Controls, one picture and one table, redrawn together whenever a control moves.

    A subclass declares its controls as ``Parameter`` attributes, in order, and fills in ``compute``, ``picture`` and
    ``table``; where one control bounds another it also fills in ``constrain``. A later cell may set a parameter
    (``panel.num_ops = 6``) and read ``panel.result``.

    In a workshop (see ``show.workshop``) the panel opens once a guess is committed: until then parameters can be set,
    but nothing is worked out or drawn, static forms hold the question alone, and ``result`` raises ``LockedError``.
    """

    lesson = ""
    """The lesson that shows the panel (``"01"``), noted beside a guess."""

    def __init__(self) -> None:
        super().__init__()
        self.controls: dict[str, Any] = {name: parameter.build() for name, parameter in self._parameters()}
        self.gate = guess_gate(self.guess_name(), self.lesson, self._opened)
        self._result: Any = None
        self._svg = ""
        self._note: Text | None = None
        self._listening = True
        self._picture_view, self._table_view, self._note_view = html_view(), html_view(), html_view()
        for name, control in self.controls.items():
            control.observe(lambda change, moved=name: self._moved(moved), names="value")
        self._control_row = control_row(list(self.controls.values()))
        self._arrange()
        self.constrain("")
        self._redraw()
        self._built = True

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse a public name that nothing here has: a misspelt parameter would move nothing, in silence."""
        if self.__dict__.get("_built") and not name.startswith("_") and not hasattr(self, name):
            require_choice("parameter", name, self.controls)
        super().__setattr__(name, value)

    # What a subclass fills in

    def compute(self) -> Any:
        """The model's result for the controls' present values."""
        raise NotImplementedError

    def picture(self, result: Any) -> str:
        """``result`` as an SVG string."""
        raise NotImplementedError

    def table(self, result: Any) -> Table:
        """``result`` as a table."""
        raise NotImplementedError

    def constrain(self, moved: str) -> Text | None:
        """Bring the other controls within the bounds that ``moved`` now sets, and say what had to move.

        Also called once with ``""`` when the panel is made.
        """
        return None

    def remark(self) -> Text | None:
        """What the learner should know about the present state; shown where nothing had to move."""
        return None

    def guess_name(self) -> str:
        """The name under which the guess about this panel is noted: the class's, unless what it asks depends."""
        return type(self).__name__

    # What a learner's cell calls

    @property
    def result(self) -> Any:
        """What ``compute`` gave for the controls' present values.

        Raises:
            LockedError: the panel still waits for a guess.
        """
        if self.gate is not None:
            self.gate.require_open()
        return self._result

    def set(self, **values: object) -> None:
        """Move several controls at once, in the order given.

        Raises:
            ValueError: a name is no parameter, or a value is of the wrong type or out of range; then nothing moves.
        """
        before = {name: control.value for name, control in self.controls.items()}
        notes = []
        try:
            with self._quietly():
                for name, value in values.items():
                    require_choice("parameter", name, self.controls)
                    self.controls[name].value = accepted_value(name, value, self.controls[name])
                    notes.append(self.constrain(name))
        except BaseException:
            self._put_back(before)
            raise
        if values:
            self._note = next((note for note in notes if note is not None), None)
            self._redraw()

    def static_forms(self) -> dict[str, str]:
        if self.gate is not None and self.gate.locked:
            return {"text/plain": self.gate.plain()}
        table = self.table(self._result).plain()
        guess = [] if self.gate is None else [self.gate.plain()]
        return {"image/svg+xml": self._svg, "text/plain": "\n".join([*guess, table])}

    # The wiring

    @classmethod
    def _parameters(cls) -> Iterator[tuple[str, Parameter]]:
        for ancestor in reversed(cls.__mro__):
            for name, value in vars(ancestor).items():
                if isinstance(value, Parameter):
                    yield name, value

    def _moved(self, name: str) -> None:
        if self._listening:
            with self._quietly():
                self._note = self.constrain(name)
            self._redraw()

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Controls that the panel itself moves cause no redraw of their own."""
        self._listening = False
        try:
            yield
        finally:
            self._listening = True

    def _put_back(self, before: dict[str, Any]) -> None:
        with self._quietly():
            for _ in range(2):  # twice: a bound may follow a control that comes after it
                for name, value in before.items():
                    self.controls[name].value = value
                    self.constrain(name)

    def _arrange(self) -> None:
        below = [self._picture_view, self._table_view]
        self.children = opened_widgets(self.gate, [self._control_row, self._note_view], below)

    def _opened(self) -> None:
        """The guess has been committed."""
        self._arrange()
        self._redraw()

    def _redraw(self) -> None:
        if self.gate is not None and self.gate.locked:
            return
        self._result = self.compute()
        self._svg = self.picture(self._result)
        self._picture_view.value = self._svg
        self._table_view.value = self.table(self._result).html()
        # The line keeps its height when it is empty, so that the picture below never jumps.
        note = self._note or self.remark()
        edge = "#D55E00" if note else "transparent"
        self._note_view.value = (
            f'<div role="status" lang="{language_tag()}" style="min-height:22px;line-height:22px;font-size:13px;'
            f'padding-left:8px;border-left:4px solid {edge}">{escape(str(note or ""))}</div>'
        )
