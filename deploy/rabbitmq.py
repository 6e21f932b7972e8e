"""A private RabbitMQ node: its own name, ports, cookie and data folder. Never the system's.

Debian's `/usr/sbin/rabbitmq-server` changes to a system user and to the system's folders; the program behind it does not,
so it is started directly. Only the standard library is used: the runner needs the broker before anything else is there.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

BINARIES = Path("/usr/lib/rabbitmq/bin")
INSTALLED = (BINARIES / "rabbitmq-server").resolve().parent.parent
"""The folder of this version: its programs are links there."""
ERLANG = Path("/usr/lib/erlang")
OLDEST = (3, 10)
"""Of earlier ones the quorum queues keep a message for ever whose time is over: nothing would be tried again."""
READY_WITHIN = 180.0
PORTS = range(12_000, 32_000)
USER = "countersign"

_SELDOM = "-rabbit quorum_tick_interval 30000 -aten poll_interval 10000 heartbeat_interval 10000"
"""What an idle node does often for the sake of others, in milliseconds. A quorum queue notes down its figures for whoever lists
queues (every 5 s, and there are some 170), and ``aten`` looks each second for other nodes of a cluster, of which this has
none, and tells them ten times a second that it lives."""

_LEAVE_EPMD_ALONE = "supervisor:terminate_child(rabbit_sup, rabbit_epmd_monitor_sup)."
"""A node starts another Erlang each minute, for no more than to have epmd, Erlang's name server, started: for the sake of nodes
that look for it by its name."""

_LOADED_TOGETHER = 40
"""Modules. Of so many the files are in memory at the same time: of all at once they would take 50 MB, which Erlang keeps."""
_MODULES = re.compile(r"\{\s*modules\s*,\s*\[(.*?)\]\s*\}", re.DOTALL)
"""What the description of an Erlang application lists, between the parentheses."""

_MESSAGES = """lists:flatten([io_lib:format("~s=~b;", [element(4, amqqueue:get_name(Queue)), Count]) ||
    Queue <- rabbit_amqqueue:list(<<"/">>),
    Count <- case amqqueue:get_type(Queue) of
        rabbit_quorum_queue ->
            {ok, {_, N}, _} = ra:leader_query(amqqueue:get_pid(Queue), {rabbit_fifo, query_messages_total, []}), [N];
        _ -> case catch rabbit_amqqueue:info(Queue, [messages]) of [{messages, N}] -> [N]; _ -> [] end
    end]).
"""
"""Without the queues of one connection that are gone by now. Raises when a quorum queue has no leader."""


class BrokerFailed(Exception):
    """The node did not come up; the message ends with the last lines of its log."""


def too_old(installed: Path = INSTALLED) -> str | None:
    """Return why nobody should work with the RabbitMQ in this folder (``rabbitmq_server-3.9.27``), None where it will do."""
    found = re.fullmatch(r"rabbitmq_server-((\d+)\.(\d+).*)", installed.name)
    if found is None or (int(found[2]), int(found[3])) >= OLDEST:
        return None
    oldest = ".".join(map(str, OLDEST))
    return f"RabbitMQ {found[1]} never gives back what is to be tried again; name one from {oldest} on as AMQP_URL."


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Draw a TCP port on loopback that nobody listens on now, and that no other process is given while this one runs.

    It lies below the range from which the system takes the ports of outgoing connections: from that range, somebody's
    connection may have taken it by the time we listen, or while a process that is started again is down.
    """
    for _ in range(200):
        port = secrets.randbelow(PORTS.stop - PORTS.start) + PORTS.start
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            _reserve(port)
            return port
    raise BrokerFailed(f"no free port between {PORTS.start} and {PORTS.stop}")


def _reserve(port: int) -> None:
    """Hold a port's name, which belongs to the network's namespace as ports do, until this process ends.

    Raises OSError when it is held already.
    """
    with socket.socket(socket.AF_UNIX) as reservation:
        reservation.bind(f"\0countersign-port-{port}")
        reservation.detach()


def applications(folder: Path, *names: str) -> list[Path]:
    """The Erlang applications of these names in ``folder``, and those there that they need."""
    folders: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        described = next(folder.glob(f"{name}-[0-9]*/ebin/{name}.app"), None)
        if described and name not in folders:
            folders[name] = described.parent.parent
            needs = re.search(r"\{applications,\s*\[(.*?)\]", described.read_text(), re.DOTALL)
            waiting += re.findall(r"\w+", needs[1]) if needs else []
    return list(folders.values())


def modules(*folders: Path) -> list[str]:
    """The names of the modules of these Erlang applications."""
    descriptions = [next(folder.glob("ebin/*.app")).read_text() for folder in folders]
    return [name for text in descriptions for names in _MODULES.findall(text) for name in re.findall(r"[\w@]+", names)]


class PrivateBroker:
    """One node with its data in ``folder``. The same folder started again keeps its queues, its ports may change.

    ``definitions`` are imported in this order whenever it starts; then they hold the user of ``amqp_url``, too.
    """

    seldom = _SELDOM
    """Erlang's arguments for a node that is alone."""

    def __init__(self, folder: Path, password: str, definitions: Sequence[Mapping[str, Any]] = ()) -> None:
        self.folder = folder.resolve()
        self.port = free_port()
        self._distribution_port = free_port()
        self._epmd_port = free_port()
        self._password = password
        self._definitions = definitions
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def amqp_url(self) -> str:
        return self.url_of(USER, self._password)

    def url_of(self, user: str, password: str) -> str:
        """The AMQP URL of a user."""
        return f"amqp://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/%2F"

    @staticmethod
    def port_of(folder: Path) -> int | None:
        """The port of the node in ``folder`` since its last start; None where none was ever started."""
        with contextlib.suppress(FileNotFoundError):
            configuration = (folder / "rabbitmq.conf").read_text()
            found = re.search(r"^listeners\.tcp\.1 = 127\.0\.0\.1:(\d+)$", configuration, re.MULTILINE)
            return int(found[1]) if found else None
        return None

    @property
    def node_name(self) -> str:
        """The name of the node, to which its data belongs: the same at each start."""
        return f"countersign-{self._node_suffix()}@localhost"

    @property
    def pid(self) -> int:
        """Process id of the node itself (the Erlang machine)."""
        return int((self.folder / "pid").read_text())

    def start(self) -> None:
        """Start the node and wait until it takes connections; BrokerFailed otherwise."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start the node and do not wait for it."""
        self._write_configuration()
        self._output = (self.folder / "output.log").open("ab")
        self._process = subprocess.Popen(
            [str(BINARIES / "rabbitmq-server")],
            env=self._environment() | {"ERL_AFLAGS": self._first_flags()},
            cwd=self.folder,  # where it dumps what it cannot save when it is killed
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        """Wait until the launched node takes connections; BrokerFailed otherwise."""
        assert self._process is not None
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if self._accepts():
                self._take_no_care_of_others()
                return
            time.sleep(0.1)
        tail = (self.folder / "output.log").read_text(errors="replace")[-2000:]
        with contextlib.suppress(ProcessLookupError):
            self._signal(signal.SIGKILL)
        raise BrokerFailed(f"RabbitMQ did not start within {READY_WITHIN:.0f} s.\n{tail}")

    def _take_no_care_of_others(self) -> None:
        """Spare a node that is alone what it does for others and takes from no setting."""
        if self.seldom:
            with contextlib.suppress(subprocess.SubprocessError, BrokerFailed):  # it works as well without that
                self.evaluate(_LEAVE_EPMD_ALONE)

    def stop(self) -> None:
        """Stop the node cleanly (SIGTERM), kill it when it takes longer than 10 s; its name server (epmd) goes too."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._stop_epmd()
        self._process = None
        self._output.close()

    def kill(self) -> None:
        """SIGKILL, as a crash would; ``start`` brings it back with its data."""
        assert self._process is not None
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._process = None
        self._output.close()

    def ctl(self, *arguments: str) -> str:
        """Run ``rabbitmqctl`` against this node and return what it prints."""
        done = subprocess.run(
            [str(BINARIES / "rabbitmqctl"), "-q", *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=READY_WITHIN,
            check=True,
        )
        return done.stdout

    def messages(self) -> dict[str, int]:
        """The number of messages in each queue, those that are being handled included.

        A quorum queue's leader is asked: what ``ctl list_queues`` shows is up to half a minute old. Costs a hundredth of what
        ``ctl`` costs, which starts a node of its own: this may be asked again and again. Raises CalledProcessError when the
        node does not answer, BrokerFailed when it cannot say.
        """
        return {name: int(count) for name, count in re.findall(r'([^";]+)=(\d+);', self.evaluate(_MESSAGES))}

    def evaluate(self, expression: str) -> str:
        """Have the node evaluate an Erlang expression, and return what comes of it, as Erlang writes it. Raises
        CalledProcessError when the node does not answer, BrokerFailed when the expression fails."""
        done = subprocess.run(
            [*self._erl_call(), "-e"],
            input=expression.rstrip() + "\n",  # what has no end of a line is no whole expression
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        if not done.stdout.startswith("{ok,"):
            raise BrokerFailed(f"the node could not say it: {done.stdout}")
        return done.stdout

    def _erl_call(self) -> list[str]:
        """Erlang's program that has a node evaluate something, and where our node is."""
        (program, *_) = ERLANG.glob("erts-*/bin/erl_call")
        cookie = (self.folder / ".erlang.cookie").read_text()
        return [str(program), "-c", cookie, "-address", f"127.0.0.1:{self._distribution_port}"]

    def _write_configuration(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lay_out_home()
        self.folder.chmod(0o700)
        (self.folder / "pid").unlink(missing_ok=True)
        (self.folder / "enabled_plugins").write_text("[].\n")
        imported = self.folder / "definitions"
        imported.mkdir(exist_ok=True)
        for number, definitions in enumerate(self._definitions):
            (imported / f"{number}.json").write_text(json.dumps(definitions))
        (self.folder / "rabbitmq.conf").write_text(
            "\n".join(
                [
                    f"listeners.tcp.1 = 127.0.0.1:{self.port}",
                    f"default_user = {USER}",
                    f"default_pass = {self._password}",
                    "loopback_users.guest = true",
                    "disk_free_limit.absolute = 50MB",
                    "log.file = rabbit.log",
                    "log.file.level = warning",
                    f"load_definitions = {imported}" if self._definitions else "",
                    *self._further_configuration(),
                    "",
                ]
            )
        )
        (self.folder / "rabbitmq.conf").chmod(0o600)

    def _further_configuration(self) -> list[str]:
        """Lines of ``rabbitmq.conf`` besides: none for a node that is alone."""
        return []

    def _lay_out_home(self) -> None:
        """Link what the node consists of into a folder of its own, without the plugins, of which none is enabled.

        Erlang looks for each module in one folder after the other, and the node reads what settings every plugin knows: with
        all plugins a start takes twice the time of a processor. Made anew each time, as RabbitMQ may have been upgraded.
        """
        home = self.folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        (home / "plugins").mkdir(parents=True)
        (home / "bin").symlink_to(BINARIES)
        (home / "escript").symlink_to(INSTALLED / "escript")
        for application in self._applications():
            (home / "plugins" / application.name).symlink_to(application)
        # The node loads every module that an application lists, to see whether it has something to do at the start. Only
        # RabbitMQ's own have, so those of Erlang are described without their modules, which are then loaded when needed.
        (home / "descriptions").mkdir()
        for description in ERLANG.glob("lib/*/ebin/*.app"):
            text = _MODULES.sub("{modules, []}", description.read_text())
            (home / "descriptions" / description.name).write_text(text)

    @staticmethod
    def _applications() -> list[Path]:
        return applications(INSTALLED / "plugins", "rabbit", "rabbitmq_prelaunch")

    def _first_flags(self) -> str:
        """Return what Erlang is to do before it starts the broker: take the descriptions of applications that are in ``home``,
        take its name, and load what every node needs.

        A node that gets its name later starts another Erlang first, for no more than to have epmd started. Modules that are
        loaded one by one, as they are called, take twice as long: each time all that is known by then is prepared anew.
        """
        folders = [folder for name in ("kernel", "stdlib", "mnesia") for folder in ERLANG.glob(f"lib/{name}-[0-9]*")]
        names = modules(*folders, *self._applications())
        together = [names[place : place + _LOADED_TOGETHER] for place in range(0, len(names), _LOADED_TOGETHER)]
        ports = f"inet_dist_listen_min {self._distribution_port} inet_dist_listen_max {self._distribution_port}"
        return " ".join(
            [
                f"-pa {self.folder / 'home' / 'descriptions'} -sname {self.node_name} -kernel {ports}",
                *(f"-s code ensure_modules_loaded {' '.join(some)}" for some in together),
            ]
        )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "RABBITMQ_SCRIPTS_DIR": str(self.folder / "home" / "bin"),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": self.node_name,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            # One scheduler, asleep when idle: the defaults spin and take memory per core.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none "
            f"-kernel inet_dist_use_interface {{127,0,0,1}} {self.seldom}",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def _node_suffix(self) -> str:
        name = self.folder / "node-name"
        if not name.exists():
            name.write_text(os.urandom(4).hex())
        return name.read_text()

    def _accepts(self) -> bool:
        # The port opens before the node can serve; the pid file is written last but one, the AMQP greeting answers last.
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(1) == b"\x01"
        except OSError:
            return False

    def _signal(self, number: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _stop_epmd(self) -> None:
        # Erlang's name server outlives its node unless it is told; ours has its own port, so nobody else uses it. It does not
        # obey while it takes a node for living: it may hear of its end later than we do.
        for epmd in ERLANG.glob("erts-*/bin/epmd"):
            kill = [str(epmd), "-port", str(self._epmd_port), "-kill"]
            for _ in range(50):
                subprocess.run(kill, env=self._environment(), capture_output=True, check=False, timeout=10)
                if not _listens(self._epmd_port):
                    break
                time.sleep(0.1)
