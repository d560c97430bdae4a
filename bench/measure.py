"""The measurements: load on one target, CPU and memory of its processes, and how it treats slow and lost clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replies import END_MARKS, PACE_MS, PACED_CHUNKS, count_events, fault_of
from scenarios import Scenario
from targets import Target

Json = dict[str, Any]


@dataclass(frozen=True)
class Check:
    """Whether a target gives back the right text and arguments, and in how many events."""

    fault: str
    events: int = 0


@dataclass(frozen=True)
class Sample:
    """One target in one scenario for a few seconds; times are microseconds, cpu is for one request or chunk."""

    cpu: float | None
    per_second: float
    whole_p50: float
    whole_p99: float
    first_p50: float
    transit_p50: float
    transit_p99: float
    delivered: float | None
    memory_idle_mb: float
    memory_peak_mb: float
    good: int
    bad: int
    error: str

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Flow:
    """taken_mb left the model for a client that reads nothing, grown_mb of it stayed in the gateway's memory.

    stop_seen: the model was told within a second that the slow client had gone; lost_ms: how soon for a live stream.
    """

    taken_mb: float
    grown_mb: float
    stop_seen: bool
    lost_ms: float | None

    def as_json(self) -> Json:
        return asdict(self)


def check(target: Target, scenario: Scenario) -> Check:
    model = scenario.model.replace("-paced", "-text")  # the times in a paced text differ; its form does not
    request = target.request(scenario.dialect, model, is_stream=scenario.is_stream, size=scenario.size)
    try:
        status, content_type, body = target.ask(request)
        if status != 200:
            return Check(f"status {status}: {body[:160].decode(errors='replace')}")
        if scenario.is_stream and "event-stream" not in content_type:
            return Check(f"expected a stream, found {content_type or 'no content type'}")
        return Check(fault_of(scenario.dialect, model, content_type, body), count_events(body))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, IndexError) as error:
        return Check(f"{type(error).__name__}: {error}"[:200])


def measure(folder: Path, target: Target, scenario: Scenario, seconds: float, events: int) -> Sample:
    """events is what one answer has, by the check: a reply cut by the end of the run counts for its part."""
    command, duration = load_command(folder, target, scenario, seconds)
    processes = process_tree(target.port)
    idle, cpu_before = resident_mb(processes), cpu_seconds(processes)
    peak = idle
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            while load.poll() is None:
                time.sleep(0.2)
                peak = max(peak, resident_mb(processes))
        finally:
            load.kill()
        output = load.stdout.read() if load.stdout else ""
    cpu = cpu_seconds(processes) - cpu_before
    result = json.loads(output)
    work = _work_done(scenario, result, events)
    nominal = scenario.connections * 1000 / PACE_MS
    settle(processes)
    return Sample(
        cpu=cpu / work * 1e6 if processes and work else None,
        per_second=result["per_second"],
        whole_p50=result["whole_us"]["p50"],
        whole_p99=result["whole_us"]["p99"],
        first_p50=result["first_us"]["p50"],
        transit_p50=result["transit_us"]["p50"],
        transit_p99=result["transit_us"]["p99"],
        delivered=result["transit_us"]["count"] / duration / nominal if scenario.is_paced else None,
        memory_idle_mb=idle,
        memory_peak_mb=peak,
        good=result["good"],
        bad=result["bad"],
        error=result["error"],
    )


def measure_flow(target: Target, mock_port: int) -> Flow:
    _wait_until_quiet(mock_port)
    processes = process_tree(target.port)
    memory, before = resident_mb(processes), mock_stats(mock_port)
    peak = memory
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        reader.settimeout(20)
        reader.connect((target.host, target.port))
        reader.sendall(target.request("chat", "oa-flood", is_stream=True))
        reader.recv(1024)
        for _ in range(16):  # four seconds in which nothing is read
            time.sleep(0.25)
            peak = max(peak, resident_mb(processes))
        stopped = mock_stats(mock_port)
    time.sleep(1.0)
    gone = mock_stats(mock_port)
    return Flow(
        taken_mb=(stopped["bytes_sent"] - before["bytes_sent"]) / 2**20,
        grown_mb=peak - memory,
        stop_seen=gone["aborted"] > before["aborted"],
        lost_ms=_lost_client_ms(target, mock_port),
    )


def mock_stats(port: int) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection):
        connection.request("GET", "/stats")
        stats: dict[str, int] = json.loads(connection.getresponse().read())
        return stats


def process_tree(port: int) -> set[int]:
    """Who listens on this local port, with all descendants; empty elsewhere than on Linux, or for a remote target."""
    sockets = _listening_sockets(port)
    members: set[int] = set()
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(entry.name)
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if sockets and any(os.readlink(fd) in sockets for fd in (entry / "fd").iterdir()):
                members.add(pid)
    while found := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= found
    return members


def cpu_seconds(processes: set[int]) -> float:
    """By the scheduler, in nanoseconds: the ticks in /proc/PID/stat are 10 ms, longer than a light load takes in one measurement."""
    total = 0.0
    for pid in processes:
        with contextlib.suppress(OSError):
            total += _scheduled_seconds(pid)
    return total


def _scheduled_seconds(pid: int) -> float:
    """Of all threads. In ticks where the kernel has no such figures."""
    threads = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
    if threads:
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(processes: set[int]) -> float:
    kilobytes = 0
    for pid in processes:
        with contextlib.suppress(OSError):
            found = re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            kilobytes += int(found[1]) if found else 0
    return kilobytes / 1024


def settle(processes: set[int], patience: float = 15) -> None:
    """Wait until the target is idle: work it still does for lost clients would slow down the next one measured."""
    deadline = time.monotonic() + patience
    while processes and time.monotonic() < deadline:
        before = cpu_seconds(processes)
        time.sleep(0.2)
        if cpu_seconds(processes) - before < 0.02:
            return


def load_command(folder: Path, target: Target, scenario: Scenario, seconds: float) -> tuple[list[str], float]:
    request = folder / "request"
    request.write_bytes(
        target.request(scenario.dialect, scenario.model, is_stream=scenario.is_stream, size=scenario.size)
    )
    # A paced reply takes 5 seconds by itself, so its measurement has a length of its own.
    duration, warmup = (5.0, 2.0 + scenario.connections / 250) if scenario.is_paced else (seconds, 0.4)
    options = {"host": target.host, "port": target.port, "request": request, "connections": scenario.connections}
    options |= {"seconds": duration, "warmup": warmup}
    if scenario.is_stream:
        options |= {"end": END_MARKS[scenario.dialect], "events-min": 1}
    if scenario.rate:
        options |= {"rate": scenario.rate}
    if scenario.is_paced:
        options |= {"stagger": 4000}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [str(folder / "load"), *words], duration


def _work_done(scenario: Scenario, result: Json, events: int) -> float:
    """How many requests or chunks the CPU time was for, from the first byte of the run to its last."""
    if scenario.is_paced:
        return float(result["marks_all"])
    if not scenario.is_stream:
        return float(result["good_all"])
    return float(result["events_all"]) / max(1, events) * scenario.chunks


def _lost_client_ms(target: Target, mock_port: int) -> float | None:
    """A client leaves in the middle of a live stream: how long until the model's connection is closed, if ever."""
    before = mock_stats(mock_port)["aborted"]
    with socket.create_connection((target.host, target.port), 20) as client:
        client.sendall(target.request("chat", "oa-paced", is_stream=True))
        time.sleep(0.5)
        client.recv(4096)
    left = time.monotonic()
    natural_end = PACED_CHUNKS * PACE_MS / 1000 - 1
    while (waited := time.monotonic() - left) < natural_end:
        if mock_stats(mock_port)["aborted"] > before:
            return round(waited * 1000, 1)
        time.sleep(0.002)
    return None


def _wait_until_quiet(mock_port: int) -> None:
    """Streams that another target never stopped run dry first; our own questions move a few bytes too."""
    last, quiet = 0, 0
    for _ in range(60):
        sent = mock_stats(mock_port)["bytes_sent"]
        quiet = quiet + 1 if sent - last < 4096 else 0
        if quiet == 3:
            return
        last = sent
        time.sleep(0.25)


def _listening_sockets(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found
