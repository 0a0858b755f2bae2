# mypy: untyped-calls-exclude="jupyter_server,jupyter_client"
"""One learner of a class: a notebook opened through a Jupyter server, its cells run, a panel's sliders moved.

Everything goes over the wires that a browser uses: the contents and sessions addresses, one websocket to the kernel in
JupyterLab's own message form, and the comm messages that ipywidgets' browser side sends.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, WebSocketError, websocket_connect

_PROTOCOL = "v1.kernel.websocket.jupyter.org"
_CLIENTS = 200  # requests at once; Tornado's own ten would make the class queue inside the benchmark
_REQUEST_SECONDS = 180.0
_CELL_SECONDS = 180.0
_PICTURE_SECONDS = 10.0
# A learner looks at each picture before the next change.
_LOOKS_SECONDS = (1.0, 2.0)
# What a learner meets and the benchmark counts; anything else is a fault of the benchmark itself.
_FAULTS = (OSError, TimeoutError, asyncio.TimeoutError, HTTPClientError, WebSocketError)


@dataclass(frozen=True)
class Message:
    """A kernel's message, and when it arrived (``time.perf_counter``)."""

    kind: str
    parent: str
    content: dict[str, Any]
    arrived: float


@dataclass(frozen=True)
class Manner:
    """How a learner goes about it.

    Args:
        left_out: ids of the cells that are not run.
        panel: id of the cell whose panel's sliders are moved.
        seconds: for how long.
        patience: seconds after which a picture counts as lost.
    """

    left_out: Sequence[str] = ()
    panel: str = "panel"
    seconds: float = 60.0
    patience: float = _PICTURE_SECONDS


@dataclass
class Learner:
    """A learner with a notebook of their own.

    Args:
        address, token: of the server.
        path: of the notebook, from the server's folder.
        manner: how they go about it.
        seed: of the choice of slider, direction and pace.

    ``latencies`` are seconds from a change to the changed picture; ``opened`` seconds until the lesson had run;
    ``errors`` what went wrong, in words.
    """

    address: str
    token: str
    path: str
    manner: Manner
    seed: int = 0
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    opened: float = 0.0

    def __post_init__(self) -> None:
        self._session = Session()
        self._socket: WebSocketClientConnection | None = None
        self._widgets: dict[str, dict[str, Any]] = {}
        self._panel: set[str] = set()

    # What a learner does

    async def run_lesson(self) -> None:
        """Open the notebook and run its cells from top to bottom; errors are noted, not raised."""
        began = time.perf_counter()
        try:
            notebook = await self._ask(f"/api/contents/{self.path}?content=1")
            await self._connect()
            for cell in notebook["content"]["cells"]:
                if cell["cell_type"] == "code" and cell["id"] not in self.manner.left_out:
                    await self._run(cell["id"], cell["source"])
        except _FAULTS as error:
            self._note("the lesson", error)
        self.opened = time.perf_counter() - began

    async def move_sliders(self) -> None:
        """Move a slider of the panel by a step, look, move again; a picture that does not come is noted as lost."""
        if not self._panel and self.manner.seconds:
            self.errors.append("no panel came up to move sliders of")
            return
        chance = random.Random(self.seed)
        ends = time.perf_counter() + self.manner.seconds
        while time.perf_counter() < ends:
            await asyncio.sleep(chance.uniform(*_LOOKS_SECONDS))
            try:
                await self._move(chance)
            except _FAULTS as error:
                self._note("a change", error)

    def leave(self) -> None:
        """Close the tab; the kernel stays, as it would."""
        if self._socket is not None:
            self._socket.close()

    # The parts of it

    async def _ask(self, where: str, body: dict[str, Any] | None = None) -> Any:
        request = HTTPRequest(
            self.address + where,
            method="GET" if body is None else "POST",
            body=None if body is None else json.dumps(body),
            headers={"Authorization": f"token {self.token}"},
            connect_timeout=_REQUEST_SECONDS,
            request_timeout=_REQUEST_SECONDS,
        )
        response = await AsyncHTTPClient(max_clients=_CLIENTS).fetch(request)
        return json.loads(response.body)

    async def _connect(self) -> None:
        kernel = {"name": "python3"}
        session = await self._ask(
            "/api/sessions", {"path": self.path, "name": self.path, "type": "notebook", "kernel": kernel}
        )
        address = f"{self.address.replace('http', 'ws', 1)}/api/kernels/{session['kernel']['id']}/channels"
        self._socket = await websocket_connect(
            HTTPRequest(
                f"{address}?session_id={self._session.session}",
                headers={"Authorization": f"token {self.token}"},
                connect_timeout=_REQUEST_SECONDS,
            ),
            subprotocols=[_PROTOCOL],
        )
        async for _ in self._exchange("kernel_info_request", {}, _REQUEST_SECONDS):
            pass

    async def _run(self, cell: str, code: str) -> None:
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
        async for message in self._exchange("execute_request", content, _CELL_SECONDS):
            if message.kind == "comm_open" and cell == self.manner.panel:
                self._panel.add(message.content["comm_id"])
            if message.kind == "error":
                self.errors.append(f"cell {cell}: {message.content['ename']}: {message.content['evalue']}")

    async def _move(self, chance: random.Random) -> None:
        """One change, as ipywidgets' browser side sends it, and its answers up to the kernel's ``idle``."""
        slider, value = self._choose(chance)
        self._widgets[slider]["value"] = value
        data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
        began, seen = time.perf_counter(), False
        async for message in self._exchange("comm_msg", {"comm_id": slider, "data": data}, self.manner.patience):
            if message.kind == "error":
                self.errors.append(f"a change: {message.content['ename']}: {message.content['evalue']}")
            if not seen and self._changes_picture(message):
                self.latencies.append(message.arrived - began)
                seen = True
        if not seen:
            self.errors.append("a change: the kernel was done and had sent no picture")

    def _choose(self, chance: random.Random) -> tuple[str, Any]:
        """A slider of the panel and the value one step up or down."""
        sliders = [name for name in self._panel if self._widgets[name].get("_model_name") == "IntSliderModel"]
        steps = [
            (name, state["value"] + step)
            for name, state in ((name, self._widgets[name]) for name in sliders)
            for step in (-1, 1)
            if state["min"] <= state["value"] + step <= state["max"]
        ]
        if not steps:
            raise OSError("the panel has no slider that can be moved")
        return chance.choice(sorted(steps))

    def _changes_picture(self, message: Message) -> bool:
        """Whether the panel's picture arrives with this message."""
        if message.kind != "comm_msg" or message.content["comm_id"] not in self._panel:
            return False
        data = message.content["data"]
        return data.get("method") == "update" and "<svg" in str(data["state"].get("value", ""))

    # The wire

    async def _exchange(self, kind: str, content: dict[str, Any], patience: float) -> AsyncIterator[Message]:
        """Send a request and give what answers it, until the kernel is idle again and has replied if it must.

        Raises:
            TimeoutError: that took longer than ``patience`` seconds.
            OSError: the server closed the connection.
        """
        assert self._socket is not None, "not connected"
        request = self._session.msg(kind, content)
        identity = request["header"]["msg_id"]
        await self._socket.write_message(serialize_msg_to_ws_v1(request, "shell", self._session.pack), binary=True)
        ends = time.perf_counter() + patience
        waited = {"idle"} | ({kind.replace("_request", "_reply")} if kind.endswith("_request") else set())
        while waited:
            message = await asyncio.wait_for(self._receive(), max(0.0, ends - time.perf_counter()))
            self._follow(message)
            if message.parent == identity:
                waited.discard(message.content["execution_state"] if message.kind == "status" else message.kind)
                yield message

    async def _receive(self) -> Message:
        assert self._socket is not None, "not connected"
        received = await self._socket.read_message()
        arrived = time.perf_counter()
        if received is None:
            raise ConnectionError("the server closed the connection")
        _, (header, parent, _, content, *_) = deserialize_msg_from_ws_v1(received)
        return Message(
            json.loads(header)["msg_type"], json.loads(parent).get("msg_id", ""), json.loads(content), arrived
        )

    def _follow(self, message: Message) -> None:
        """Keep each widget's state as the browser would."""
        if message.kind == "comm_open":
            self._widgets[message.content["comm_id"]] = dict(message.content["data"].get("state", {}))
        elif message.kind == "comm_msg" and message.content["data"].get("method") == "update":
            self._widgets.setdefault(message.content["comm_id"], {}).update(message.content["data"]["state"])

    def _note(self, what: str, error: Exception) -> None:
        self.errors.append(f"{what}: {type(error).__name__}: {error}".rstrip(": "))
