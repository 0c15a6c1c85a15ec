"""A Slurm of several nodes on one machine: one controller, a slurmd a node, pretended cards.

Written without systemd, as in a container. Jobs do not inherit SLURM_CONF, so the configuration
lies in /etc/slurm and root is needed. Stopped, it leaves nothing running and takes its
configuration away.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from itertools import count
from pathlib import Path

MUNGE = Path("/run/munge")
CONF, MARK = Path("/etc/slurm"), "# written by the tests of visprompt"
NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged")
# of one Slurm each: what an ended one still has to say is for nobody else
PORTS = count(17_000, 100)


def why_not() -> str | None:
    """Why no Slurm can be started here, or None."""
    if missing := [name for name in NEEDED if not shutil.which(name)]:
        return f"{', '.join(missing)} not installed (Debian: slurmctld slurmd slurm-client munge)"
    if os.getuid():
        return "root is needed to start a Slurm"
    if (conf := CONF / "slurm.conf").exists() and MARK not in conf.read_text():
        return f"{conf} belongs to a Slurm of this machine"
    return None


def run(*command: str, check: bool = True) -> str:
    """The output of a command."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def running() -> list[str]:
    """The daemons of Slurm and munge that run on this machine."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            name, rest = path.read_text().split("(", 1)[1].rsplit(")", 1)
            found |= {name} - ({name} if rest.split()[0] == "Z" else set())
    return sorted(found & {"slurmctld", "slurmd", "munged"})


class Slurm:
    """`with Slurm(folder, nodes=3, cards=0):` starts it; `cards` is the number of pretended GPUs of
    each node."""

    def __init__(self, folder: Path, nodes: int = 3, cpus: int = 2, cards: int = 0):
        self.folder, self.cpus, self.cards = folder, cpus, cards
        self.nodes, self.port = [f"n{i + 1}" for i in range(nodes)], next(PORTS)
        self.daemons: dict[str, subprocess.Popen] = {}
        self.munged: int | None = None  # the process, if this Slurm started it

    def __enter__(self):
        self.configure()
        self.munge()
        try:
            self.start_controller()
            for i, node in enumerate(self.nodes):
                self.start(node, "slurmd", "-D", "-N", node)
            self.wait_for(
                lambda: run("sinfo", "-h", "-o", "%T").split() == ["idle"], "nodes that are idle"
            )
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def configure(self):
        """Write /etc/slurm; every node is this host under another port."""
        host, state = socket.gethostname().split(".")[0], self.folder
        for name in ("state", "log", *(f"spool/{node}" for node in self.nodes)):
            (state / name).mkdir(parents=True, exist_ok=True)
        # a character device whose name ends in a digit
        cards = [state / f"card{i}" for i in range(self.cards)]
        for card in cards:
            if not card.exists():
                run("mknod", str(card), "c", "1", "3")
        gres = f" Gres=gpu:{self.cards}" if self.cards else ""
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 "
            f"Port={self.port + 1 + i} CPUs={self.cpus} RealMemory=4000{gres}"
            for i, node in enumerate(self.nodes)
        ]
        lines = [
            MARK,
            "ClusterName=pretended",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self.port}",
            "SlurmUser=root",
            "AuthType=auth/munge",
            "ProctrackType=proctrack/linuxproc",  # no cgroups, no systemd
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "AccountingStorageType=accounting_storage/none",
            "JobAcctGatherType=jobacct_gather/none",
            "ReturnToService=2",
            "MinJobAge=300",
            "KillWait=2",
            *(["GresTypes=gpu"] if self.cards else []),
            f"StateSaveLocation={state / 'state'}",
            f"SlurmdSpoolDir={state / 'spool'}/%n",
            f"SlurmctldPidFile={state / 'log'}/slurmctld.pid",
            f"SlurmdPidFile={state / 'log'}/%n.pid",
            f"SlurmctldLogFile={state / 'log'}/slurmctld.log",
            f"SlurmdLogFile={state / 'log'}/%n.log",
            *nodes,
            # one called "all" is read as Python
            "PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        ]
        CONF.mkdir(exist_ok=True)
        (CONF / "slurm.conf").write_text("\n".join(lines) + "\n")
        if cards:
            (CONF / "gres.conf").write_text(
                f"{MARK}\nName=gpu File={state}/card[0-{self.cards - 1}]\n"
            )

    def munge(self):
        """munged as its own user, unless one runs; `stop` ends one that was started here."""
        if subprocess.run(["munge", "-n"], capture_output=True).returncode:
            MUNGE.mkdir(exist_ok=True)
            shutil.chown(MUNGE, "munge", "munge")
            run("runuser", "-u", "munge", "--", "munged", "--force")
            self.munged = int((MUNGE / "munged.pid").read_text())

    def start(self, name: str, *command: str):
        """A daemon in the foreground, its output in the log folder."""
        log = open(self.folder / "log" / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True
        )

    def start_controller(self):
        self.start("slurmctld", "slurmctld", "-D")
        self.wait_for(
            lambda: "UP" in run("scontrol", "ping", check=False), "a controller that answers"
        )

    def restart_controller(self):
        """End the controller and start another, which reads what the first has saved.

        (One that is killed while it starts a job comes back with that job held and its node
        drained, for an administrator to release: nothing is lost, but no sweep goes on by itself.)
        """
        self.daemons["slurmctld"].terminate()
        self.daemons["slurmctld"].wait(30)
        time.sleep(2)
        self.start_controller()

    def wait_for(self, happened, what: str, seconds: float = 60):
        """Raises: RuntimeError, when it has not happened in time."""
        end = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > end:
                raise RuntimeError(f"no {what} within {seconds:.0f} s; see {self.folder / 'log'}")
            time.sleep(0.2)

    def stop(self):
        """Cancel all jobs, end all daemons, remove the configuration."""
        subprocess.run(["scancel", "--user=root"], capture_output=True)
        for name in [*self.nodes, "slurmctld"]:
            if daemon := self.daemons.get(name):
                daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
        if self.munged:
            os.kill(self.munged, signal.SIGTERM)
            self.munged = None
        for name in ("slurm.conf", "gres.conf"):
            (CONF / name).unlink(missing_ok=True)
