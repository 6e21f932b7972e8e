"""What a cluster does around containers: addresses, replicas, probes, restarts, rolling updates. podman runs the containers.

Each pod has a thread that is its kubelet: it asks the probes of the manifest through the pods' network, with their periods, time-outs
and thresholds, restarts a container whose liveness fails, and takes a pod out of its Service while it is not ready. What the
broker's and the database's probes run is run until they are ready once: their Service stays the same address.
"""

import contextlib
import ipaddress
import json
import os
import random
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.deployed import engine
from tests.deployed.engine import EngineFailed, inspect, podman
from tests.deployed.images import full_name, say
from tests.deployed.manifests import Manifests, PodFiles, Workload

NETWORK = f"countersign-{os.getpid()}"
"""By its name, podman remembers which addresses are taken, also for a run that was killed: each run has another."""
SUBNET = ipaddress.ip_network("10.213.77.0/24")
GATEWAY_ADDRESS = str(SUBNET[1])
"""The machine's own address in the pods' network."""
STATEFUL = {"postgres": str(SUBNET[250]), "rabbitmq": str(SUBNET[251])}
AT_ONCE = 6
INIT_TRIES = 20


@dataclass
class Stopped:
    """How one container was stopped: its exit code, 137 when it was killed at the end of its grace period, and how long it took."""

    pod: str
    exit_code: int
    seconds: float


class Pod:
    """One pod with one container, from its start to its end."""

    def __init__(self, cluster: "Cluster", workload: Workload, name: str, image: str, address: str) -> None:
        self.workload = workload
        self.name = name
        self.image = image
        self.address = address
        self.container = f"{name}-{workload.container['name']}"
        self.ready = False
        self.not_ready_because = "it has not started"
        self._cluster = cluster
        self._init, self._file = cluster.files.write(workload, name, image)
        self._ending = threading.Event()
        self._kubelet: threading.Thread | None = None
        self._pid = 0
        self._process = -1

    def start(self) -> None:
        """Run the init containers, again when they fail, and start the container; probes then tell when it is ready."""
        if self._init is not None:
            self._run_init()
        self._play(self.name, self._file)
        self._watch_process()
        self._ending.clear()
        if "httpGet" in self.workload.container["readinessProbe"]:
            self._kubelet = threading.Thread(target=self._keep, name=f"kubelet of {self.name}", daemon=True)
            self._kubelet.start()

    def _run_init(self) -> None:
        name = f"{self.name}-init"
        assert self._init is not None
        for tried in range(INIT_TRIES):
            self._play(name, self._init)
            container = f"{name}-{self.workload.spec['initContainers'][0]['name']}"
            code = int(podman("wait", container, within=300).strip())
            podman("pod", "rm", "--force", name)
            if code == 0:
                return
            time.sleep(min(10, tried + 1))
        raise EngineFailed(f"the init container of {self.name} failed {INIT_TRIES} times")

    def _play(self, name: str, file: Path) -> None:
        # Two pods never have the address at once: the init containers' pod is gone when the pod itself starts.
        network = f"{NETWORK}:ip={self.address}"
        log = f"path={self._cluster.logs / f'{name}.log'}"
        podman("kube", "play", "--quiet", "--network", network, "--log-opt", log, file, within=300)

    def stop(self) -> Stopped:
        """End the pod as a cluster does: out of its Service first, preStop, SIGTERM, SIGKILL when its grace period is over."""
        began = time.monotonic()
        self._ending.set()
        self.ready = False
        if self._kubelet is not None:
            self._kubelet.join()
        before = self.workload.container.get("lifecycle", {}).get("preStop")
        if before is not None:
            podman("exec", self.container, *before["exec"]["command"])
        grace = self.workload.spec.get("terminationGracePeriodSeconds", 30)
        podman("stop", "--time", str(int(grace - (time.monotonic() - began))), self.container, within=grace + 60)
        code = int(inspect(self.container)["State"]["ExitCode"])
        podman("pod", "rm", "--force", self.name)
        self._forget_process()
        stopped = Stopped(self.name, code, time.monotonic() - began)
        self._cluster.stopped.append(stopped)
        return stopped

    def restart(self) -> None:
        """Stop the container as asked to, within its grace period, and start it again: the same volumes, the same address."""
        grace = self.workload.spec.get("terminationGracePeriodSeconds", 30)
        monitor = Path("/proc", str(inspect(self.container)["State"]["ConmonPid"]))
        podman("stop", "--time", str(grace), self.container, within=grace + 60)
        # podman's own `restart` does not wait for it: on a busy machine it wrote that the container had ended when the next run
        # of it had begun, and podman took that for the end of this one.
        wait_until(lambda: not monitor.exists(), within=60, what=f"podman to have noted the end of {self.name}")
        podman("start", self.container)
        self._watch_process()

    def kill(self) -> None:
        """kill -9 of its process, from outside; podman starts the container again, as `restartPolicy: Always` says."""
        self.ready = False
        self._cluster.kills.append((self.address, time.monotonic()))
        os.kill(self._pid, signal.SIGKILL)

    @property
    def pid(self) -> int:
        """The process on this machine that is the container's first."""
        return self._pid

    def get(self, path: str, *, port: str = "health", timeout: float = 5) -> requests.Response:
        number = next(one["containerPort"] for one in self.workload.container["ports"] if one["name"] == port)
        return requests.get(f"http://{self.address}:{number}{path}", timeout=timeout)

    def exec_ready(self) -> bool:
        """What its readiness probe runs, for the broker and the database."""
        command = self.workload.container["readinessProbe"]["exec"]["command"]
        try:
            podman("exec", self.container, *command)
        except EngineFailed:
            return False
        return True

    def started_again(self) -> None:
        """Wait until the container of a pod without HTTP probes, which was killed, runs again."""
        self._watch_process()

    def let_go(self) -> None:
        """End the probes; the container goes on."""
        self._ending.set()

    def _watch_process(self) -> None:
        """Hold on to the container's process, so that its end is noticed at once."""
        deadline = time.monotonic() + 120
        while True:
            state = inspect(self.container)["State"]
            if state["Running"] and state["Pid"] not in (0, self._pid):
                with contextlib.suppress(ProcessLookupError):
                    process = os.pidfd_open(state["Pid"])
                    self._forget_process()
                    self._pid, self._process = state["Pid"], process
                    return
            if time.monotonic() > deadline or (self._ending.is_set() and self._kubelet is not None):
                raise EngineFailed(f"{self.container} did not start again: {state}")
            time.sleep(0.2)

    def _forget_process(self) -> None:
        if self._process >= 0:
            os.close(self._process)
        self._process = -1

    def _ended(self) -> bool:
        return bool(select.select([self._process], [], [], 0)[0])

    def _keep(self) -> None:
        """The kubelet: probes and restarts until the pod is stopped."""
        while not self._ending.is_set():
            reason = self._probe()
            if reason is None:
                return
            self.ready, self.not_ready_because = False, reason
            say(f"{self.name} is started again: {reason}")
            if self._ending.is_set():
                return
            try:
                if self._ended():
                    self._watch_process()
                else:
                    self.restart()
            except EngineFailed as failed:
                self.not_ready_because = str(failed)
                return

    def _probe(self) -> str | None:
        """Ask the probes in turn. Returns why the container must start again, or None when the pod is being stopped."""
        started = False
        probes = {
            name: Probe(self, self.workload.container[f"{name}Probe"]) for name in ("startup", "liveness", "readiness")
        }
        while not self._ending.wait(0.1):
            if self._ended():
                return "its process ended"
            if not started:
                asked = probes["startup"].ask_when_due()
                started = asked is True
                if probes["startup"].failed:
                    return f"it did not start: {probes['startup'].problem}"
                continue
            probes["liveness"].ask_when_due()
            if probes["liveness"].failed:
                return f"not alive: {probes['liveness'].problem}"
            if (asked := probes["readiness"].ask_when_due()) is True:
                self.ready = True
            elif asked is False:
                self.not_ready_because = probes["readiness"].problem
                self.ready = self.ready and not probes["readiness"].failed
        return None


class Probe:
    """One HTTP probe of the manifest."""

    def __init__(self, pod: Pod, declared: dict[str, Any]) -> None:
        self._pod = pod
        self._get = declared["httpGet"]
        self._period = declared.get("periodSeconds", 10)
        self._timeout = declared.get("timeoutSeconds", 1)
        self._threshold = declared.get("failureThreshold", 3)
        self._due_at = 0.0
        self._failures = 0
        self.problem = ""

    @property
    def failed(self) -> bool:
        return bool(self._failures >= self._threshold)

    def ask_when_due(self) -> bool | None:
        """Whether it succeeded; None when it is not due yet."""
        if time.monotonic() < self._due_at:
            return None
        self._due_at = time.monotonic() + self._period
        try:
            answer = self._pod.get(self._get["path"], port=self._get["port"], timeout=self._timeout)
            self.problem = "" if 200 <= answer.status_code < 400 else f"{answer.status_code} {answer.text[:300]}"
        except requests.RequestException as failed:
            self.problem = type(failed).__name__
        self._failures = self._failures + 1 if self.problem else 0
        return not self.problem


@dataclass
class Cluster:
    """The pods of the overlay and what keeps them."""

    manifests: Manifests
    folder: Path = field(default_factory=lambda: engine.FOLDER / "run")
    logs: Path = field(default_factory=lambda: engine.FOLDER / "logs")
    """What containers wrote, kept until the next run."""

    def __post_init__(self) -> None:
        self.remove_all()
        for folder in (self.folder, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        self.files = PodFiles(self.manifests, self.folder, STATEFUL)
        self.pods: dict[str, list[Pod]] = {name: [] for name in self.manifests.workloads}
        self.stopped: list[Stopped] = []
        self.kills: list[tuple[str, float]] = []
        """Addresses of pods whose process was killed, and when (monotonic)."""
        self._addresses = iter([str(SUBNET[number]) for number in range(10, 240)])
        self._numbers = dict.fromkeys(self.manifests.workloads, 0)
        self._lock = threading.Lock()
        # Internal: there is no way out of it, nor from outside into it.
        podman("network", "create", "--internal", "--subnet", str(SUBNET), "--gateway", GATEWAY_ADDRESS, NETWORK)

    @staticmethod
    def remove_all() -> None:
        """Whatever an earlier run left in our storage."""
        pods = podman("pod", "ls", "--format", "{{.Name}}").split()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for each in [
                threads.submit(podman, "pod", "rm", "--force", "--time", "0", pod, within=300) for pod in pods
            ]:
                each.result()
        for network in podman("network", "ls", "--format", "{{.Name}}").split():
            if network.startswith("countersign"):
                podman("network", "rm", "--force", network)
        # A run that was killed may leave its bridge behind without anybody who knows of it.
        bridges = engine.run("ip", "-json", "address", "show", "type", "bridge", "to", GATEWAY_ADDRESS)
        for bridge in json.loads(bridges or "[]"):
            if bridge:
                engine.run("ip", "link", "delete", bridge["ifname"])

    def close(self) -> None:
        for pod in self.all():
            pod.let_go()
        self.remove_all()
        shutil.rmtree(self.folder, ignore_errors=True)

    def all(self) -> list[Pod]:
        return [pod for pods in self.pods.values() for pod in pods]

    def of(self, service: str) -> list[Pod]:
        """The pods of both processes of a service."""
        return [pod for name, pods in self.pods.items() if name.startswith(f"{service}-") for pod in pods]

    def image_of(self, name: str) -> str:
        """The image that the manifests give a workload."""
        return full_name(self.manifests.workloads[name].image)

    def make(self, name: str, image: str | None = None) -> Pod:
        """A pod of the workload, not started yet."""
        workload = self.manifests.workloads[name]
        with self._lock:
            self._numbers[name] += 1
            pod_name = name if name in STATEFUL else f"{name}-{self._numbers[name]}"
            address = STATEFUL.get(name) or next(self._addresses)
        pod = Pod(self, workload, pod_name, image or self.image_of(name), address)
        with self._lock:
            self.pods[name].append(pod)
        return pod

    def start(self, pods: list[Pod]) -> None:
        """Start pods side by side; the first that fails is raised when all have been tried."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for each in [threads.submit(pod.start) for pod in pods]:
                each.result()

    def start_all(self, others: list[Pod], *, broker_last: bool = True) -> None:
        """Start pods, broker and database. With ``broker_last`` these come when all others wait for them."""
        began = time.monotonic()
        waiting = len(self._inits()) + AT_ONCE
        with ThreadPoolExecutor(1) as thread:
            if broker_last:
                started = thread.submit(self.start, others)
                wait_until(lambda: len(self._inits()) >= waiting, within=60, what="the first pods")
            stateful = [self.make(name) for name in STATEFUL]
            self.start(stateful)
            for pod in stateful:
                wait_until(pod.exec_ready, within=120, what=f"{pod.name} to be ready")
            say(f"broker and database are ready after {time.monotonic() - began:.0f} s")
            if not broker_last:
                started = thread.submit(self.start, others)
            started.result()
        say(f"{len(others)} pods run after {time.monotonic() - began:.0f} s")
        self.wait_ready(others)
        say(f"all are ready after {time.monotonic() - began:.0f} s")

    def stop_all(self) -> None:
        """Stop every pod, broker and database last; their volumes stay."""
        began = time.monotonic()
        for stateful in (False, True):
            with ThreadPoolExecutor(AT_ONCE) as threads:
                chosen = [pod for pod in self.all() if (pod.workload.name in STATEFUL) == stateful]
                for each in [threads.submit(self.remove, pod) for pod in chosen]:
                    each.result()
        say(f"all are stopped after {time.monotonic() - began:.0f} s")

    def _inits(self) -> list[Path]:
        """The logs of the init containers that have been started."""
        return list(self.logs.glob("*-init.log"))

    def roll(self, name: str, image: str | None = None, meanwhile: Callable[[], None] = lambda: None) -> None:
        """A rolling update (maxUnavailable 0, maxSurge 1) of a workload to ``image``, by default that of the manifests.

        Each new pod is ready before an old one goes, and ``meanwhile`` is called while both run.
        """
        for old in list(self.pods[name]):
            new = self.make(name, image)
            new.start()
            self.wait_ready([new])
            meanwhile()
            self.remove(old)

    def remove(self, pod: Pod) -> Stopped:
        stopped = pod.stop()
        with self._lock:
            self.pods[pod.workload.name].remove(pod)
        return stopped

    def wait_ready(self, pods: list[Pod] | None = None, *, within: float = 180) -> None:
        """Until each of ``pods`` (default: all that have HTTP probes) is ready; AssertionError says which are not, and why."""
        deadline = time.monotonic() + within
        wanted = pods if pods is not None else [pod for pod in self.all() if pod.workload.name not in STATEFUL]
        while waiting := [f"{pod.name} ({pod.not_ready_because})" for pod in wanted if not pod.ready]:
            assert time.monotonic() < deadline, f"not ready after {within:.0f} s: {', '.join(waiting)}"
            time.sleep(0.2)

    def was_killed(self, url: str, *, since: float) -> bool:
        """Whether the process behind a gateway's address was killed at ``since`` (monotonic) or later."""
        return any(url == f"http://{address}:8000" and at >= since for address, at in self.kills)

    def addresses(self) -> list[str]:
        """The gateway's Service: where HTTP is answered now, in random order."""
        found = [f"http://{pod.address}:8000" for pod in self.pods["gateway-serve"] if pod.ready]
        random.shuffle(found)
        return found


def wait_until(condition: Callable[[], bool], *, within: float, what: str) -> None:
    """Raises EngineFailed when it takes longer than ``within`` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise EngineFailed(f"{what}: not within {within:.0f} s")
        time.sleep(0.3)
