"""One learner on a real JupyterHub: what the own server takes there, and what an arrival takes of the hub."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import yaml

from benchmarks.browser import ROOT
from benchmarks.classroom_learner import Learner, Manner
from benchmarks.classroom_run import ClassRun, teach
from benchmarks.classroom_server import Server, held, processor_seconds, with_argument
from benchmarks.memory import LESSON

if TYPE_CHECKING:
    from tests.deploy.hub_driver import HubLearner, running_hub
    from tests.deploy.hub_proxy import NoProxyError, proxy_command
elif importlib.util.find_spec("jupyterhub"):
    # The tests import them by these names as well: the folder of the tests is no package.
    sys.path.append(str(ROOT / "tests" / "deploy"))
    from hub_driver import HubLearner, running_hub
    from hub_proxy import NoProxyError, proxy_command


class NoHubError(Exception):
    """No hub can be started here, and why."""


@dataclass(frozen=True)
class Arrival:
    """A learner who came to a hub.

    Args:
        run: a class of one, on the learner's own server.
        hub_bytes, proxy_bytes: held by both afterwards.
        hub_seconds: processor time of the hub from the log-in until the server was ready.
    """

    run: ClassRun
    hub_bytes: int
    proxy_bytes: int
    hub_seconds: float


def arrival(manner: Manner, lesson: Path = LESSON) -> Arrival:
    """A hub with the settings of ``deploy/values.yaml``, one learner, the lesson and its sliders.

    Raises:
        NoHubError: JupyterHub or its proxy is not there.
    """
    if importlib.util.find_spec("jupyterhub") is None:
        raise NoHubError("JupyterHub is not installed")
    try:
        proxy = proxy_command()
    except NoProxyError as error:
        raise NoHubError(str(error)) from error
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder), _values(), proxy) as hub:
        before = processor_seconds(hub.process)
        learner = HubLearner(hub, "learner")
        learner.log_in()
        learner.start_server()
        spent = processor_seconds(hub.process) - before
        shutil.copyfile(lesson, learner.home / lesson.name)
        server = Server(
            learner.server, learner.token, with_argument(hub.process, "jupyterhub.singleuser"), learner.home
        )
        taught = [Learner(server.address, server.token, lesson.name, manner)]
        run = asyncio.run(teach(server, taught, 0, psutil.getloadavg()[0]))
        return Arrival(run, held(hub.process), held(with_argument(hub.process, proxy[-1])), spent)


def _values() -> dict[str, Any]:
    """The settings, the workshop's locks off: a simulated learner commits no guess."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "values.yaml").read_text(encoding="utf-8"))
    values["singleuser"]["extraEnv"]["LESSONS_WORKSHOP"] = "0"
    return values
