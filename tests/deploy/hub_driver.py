"""A JupyterHub with the settings of ``deploy/values.yaml`` on this machine, and learners who log in to it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests

PASSWORD = "a password for the class"
# In a cluster each server has an address of its own. Here they share one, and two may choose the same port for their
# kernels at the same moment: so kernels talk through files.
_NO_PORTS = ["--KernelManager.transport=ipc"]

_CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/homes/{{username}}"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = {args!r}
c.Spawner.default_url = {default_url!r}
c.Spawner.environment = {environment!r}
for name, options in {sections!r}.items():
    c[name].update(options)
c.SharedPasswordAuthenticator.user_password = {password!r}
"""


@dataclass
class Hub:
    """A running hub: where it is, the folder above its learners' own, and its process, whose children are the others."""

    address: str
    homes: Path
    process: psutil.Process


@dataclass
class HubLearner:
    """Somebody in front of a browser."""

    hub: Hub
    name: str
    browser: requests.Session = field(default_factory=requests.Session)
    token: str = ""

    @property
    def home(self) -> Path:
        return self.hub.homes / self.name

    @property
    def server(self) -> str:
        """The address of the own server."""
        return f"{self.hub.address}/user/{self.name}"

    def log_in(self) -> None:
        """Type name and password into the form; then ask for a token, as the form's page offers."""
        page = f"{self.hub.address}/hub/login"
        self.browser.get(page, timeout=30).raise_for_status()
        typed = {"username": self.name, "password": PASSWORD, "_xsrf": self._xsrf()}
        answer = self.browser.post(page, data=typed, timeout=30, allow_redirects=False)
        assert answer.status_code == 302, f"{self.name} cannot log in: {answer.status_code} {answer.text[:300]}"
        self.browser.get(f"{self.hub.address}/hub/token", timeout=30).raise_for_status()
        asked = self.browser.post(
            f"{self.hub.address}/hub/api/users/{self.name}/tokens",
            json={},
            headers={"X-XSRFToken": self._xsrf()},
            timeout=30,
        )
        asked.raise_for_status()
        self.token = asked.json()["token"]

    def start_server(self, seconds: float = 60) -> None:
        """Have the hub start the own server and wait for it."""
        users = f"{self.hub.address}/hub/api/users/{self.name}"
        requests.post(f"{users}/server", headers=self.headers, timeout=seconds).raise_for_status()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            servers = requests.get(users, headers=self.headers, timeout=30).json()["servers"]
            if any(server["ready"] for server in servers.values()):
                return
            time.sleep(0.2)
        raise RuntimeError(f"the server of {self.name} did not start in {seconds} s")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}

    def follow(self, link: str) -> str:
        """Open ``link`` in the browser, logged in; the address where that ends."""
        answer = self.browser.get(link, timeout=60)
        answer.raise_for_status()
        return answer.url

    def pull(self, query: dict[str, str]) -> str:
        """What the page behind an nbgitpuller link does: fetch, and say what happened."""
        answer = requests.get(f"{self.server}/git-pull/api", params=query, headers=self.headers, timeout=60)
        answer.raise_for_status()
        return answer.text

    def contents(self, path: str) -> requests.Response:
        """A file of the own folder through the own server."""
        return requests.get(f"{self.server}/api/contents/{path}", headers=self.headers, timeout=30)

    def save(self, path: str, model: dict[str, Any]) -> None:
        """Save a file as JupyterLab does."""
        where = f"{self.server}/api/contents/{path}"
        requests.put(where, json=model, headers=self.headers, timeout=30).raise_for_status()

    def _xsrf(self) -> str:
        # The hub's own, not that of a server below it.
        return next(
            cookie.value or "" for cookie in self.browser.cookies if cookie.name == "_xsrf" and cookie.path == "/hub/"
        )


@contextmanager
def running_hub(folder: Path, values: dict[str, Any], proxy: list[str]) -> Iterator[Hub]:
    """A hub over ``folder``, with what ``values.yaml`` says that does not need Kubernetes.

    Args:
        proxy: the command that starts the proxy.
    """
    with tempfile.TemporaryDirectory(
        prefix="hub-", dir="/tmp"
    ) as runtime:  # a socket's whole path: 100 letters at most
        config, learners = values["hub"]["config"], values["singleuser"]
        port, hub_port, proxy_port = _free_ports(3)
        (folder / "jupyterhub_config.py").write_text(
            _CONFIG.format(
                port=port,
                hub_port=hub_port,
                proxy_port=proxy_port,
                folder=folder.as_posix(),
                proxy=proxy,
                python=sys.executable,
                args=[*_NO_PORTS, *(["--allow-root"] if os.geteuid() == 0 else [])],
                default_url=learners["defaultUrl"],
                environment={
                    **learners["extraEnv"],
                    "JUPYTER_CONFIG_PATH": str(folder / "etc"),
                    "JUPYTER_RUNTIME_DIR": runtime,
                },
                sections={name: options for name, options in config.items() if name != "KubeSpawner"},
                password=PASSWORD,
            ),
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "jupyterhub", "--config", "jupyterhub_config.py"]
        with (folder / "hub.log").open("w") as log:
            hub = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=_environment(folder))
        try:
            _wait_for(f"http://127.0.0.1:{port}/hub/api/", hub, folder / "hub.log")
            yield Hub(f"http://127.0.0.1:{port}", folder / "homes", psutil.Process(hub.pid))
        finally:
            _end(hub, folder)


def _end(hub: subprocess.Popen[bytes], folder: Path) -> None:
    """End the hub, which ends the proxy and the learners' servers; then whatever it has left behind."""
    started = psutil.Process(hub.pid).children(recursive=True) if hub.poll() is None else []
    with suppress(OSError, ValueError, psutil.Error):  # a hub that could not start leaves its proxy running
        started.append(psutil.Process(int((folder / "proxy.pid").read_text(encoding="utf-8"))))
    hub.terminate()
    try:
        hub.wait(timeout=30)
    finally:
        _, left = psutil.wait_procs(started, timeout=5)
        for process in left:
            process.kill()


def _environment(folder: Path) -> dict[str, str]:
    """This process's, without what would lead a server to somebody else's Jupyter settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
    return {**kept, "HOME": str(folder)}


def _free_ports(count: int) -> list[int]:
    """Ports that are free, all different."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _wait_for(address: str, hub: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and hub.poll() is None:
        try:
            requests.get(address, timeout=2).raise_for_status()
            return
        except requests.RequestException:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterHub did not start:\n{log.read_text()[-3000:]}")
