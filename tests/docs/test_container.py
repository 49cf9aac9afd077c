"""The container: what it is built from, its scripts, the compose file, and, where there is an engine, the image."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from make_docs import FOLDER, ROOT
from sqlalchemy import make_url
from stores import find_older_server_programs, start_own_server

CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
SCRIPTS = ROOT / "deploy" / "container"
COMPOSE = ROOT / "deploy" / "compose.yaml"
PROGRAMS = str(Path(sys.executable).parent)
NEEDS_GNU_DATE = pytest.mark.skipif(sys.platform != "linux", reason="the script uses GNU date, as the image has it")
PSQL = next((folder / "psql" for folder in find_older_server_programs().values() if folder), None)


def copy_context(to: Path) -> None:
    """Copy what `.dockerignore` lets an engine see."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    for name in (pattern[1:] for pattern in patterns if pattern.startswith("!")):
        source, target = ROOT / name, to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def test_context_is_enough_for_the_package(tmp_path: Path) -> None:
    """The files that the engine sees make a wheel with the same files as the checkout's; every copied file is there."""
    (context := tmp_path / "context").mkdir()
    copy_context(context)
    names = []
    for folder in (context, ROOT):
        (dist := tmp_path / f"dist-{len(names)}").mkdir()
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        (wheel,) = dist.iterdir()
        listing = subprocess.run(
            [sys.executable, "-m", "zipfile", "-l", wheel], check=True, capture_output=True, text=True
        )
        names.append(sorted(line.split()[0] for line in listing.stdout.splitlines()))
    assert names[0] == names[1]
    for source in re.findall(r"^COPY (?!--from)(?:--chmod=\d+ )?(\S+) ", CONTAINERFILE, re.MULTILINE):
        assert (context / source).exists(), source


def test_image_runs_without_root_and_keeps_the_ledger_in_a_volume() -> None:
    """The account is not root's, the ledger and all that is kept lie in the volume, and the demo is the default."""
    last = CONTAINERFILE.rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.+)$", last, re.MULTILINE) == ["10001:10001"]
    assert 'VOLUME ["/ledger"]' in last
    assert "RATINGS_DB=/ledger/ratings.db" in last
    assert re.findall(r"XDG_\w+=(\S+)", last) == ["/ledger/.cache", "/ledger/.config", "/ledger/.state"]
    assert last.endswith('ENTRYPOINT ["ratings"]\nCMD ["demo"]\n')


def load_services() -> dict[str, Any]:
    """Return the services of the compose file."""
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return services


def test_services_have_the_roles_that_they_need() -> None:
    """Each service has its own role and that role's password, and only `setup` has the owner's."""
    services = load_services()
    roles = {}
    for name, service in services.items():
        if name != "postgres":
            environment = service["environment"]
            role = make_url(environment["RATINGS_DB"]).username or ""
            assert environment["PGPASSWORD"] == f"${{{role.upper()}_PASSWORD:?}}"
            assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
            roles[name] = role
    assert roles == {
        "setup": "ratings_owner",
        "writer": "ratings_writer",
        "pages": "ratings_reader",
        "nightly": "ratings_rebuilder",
    }
    assert [name for name, service in services.items() if "profiles" in service] == ["setup", "writer"]
    used = set(re.findall(r"\$\{(\w+_PASSWORD):\?\}", COMPOSE.read_text(encoding="utf-8")))
    page = (FOLDER / "deploying.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^for role in (.+); do$", page, re.MULTILINE)
    assert used == {f"{name}_PASSWORD" for name in line.split()}
    assert re.findall(r"^\| `(\w+)` \|", page.partition("| service |")[2], re.MULTILINE)[: len(services)] == [*services]


@pytest.mark.skipif(shutil.which("docker") is None, reason="no program of Docker is installed")
def test_docker_accepts_the_compose_file(tmp_path: Path) -> None:
    """Docker's own reader finds nothing wrong with the compose file."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("this Docker has no compose")
    passwords = set(re.findall(r"\$\{(\w+_PASSWORD):\?\}", COMPOSE.read_text(encoding="utf-8")))
    (environment := tmp_path / "env").write_text("".join(f"{name}=x\n" for name in passwords))
    command = ["docker", "compose", "--env-file", environment, "-f", COMPOSE, "--profile", "tools", "config", "--quiet"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


@NEEDS_GNU_DATE
def test_every_night_waits_for_the_time_and_goes_on_after_a_failure(tmp_path: Path) -> None:
    """The command runs at the given time of day in the zone `TZ`, and again after a failure, which is reported."""
    (stubs := tmp_path / "bin").mkdir()
    (stubs / "sleep").write_text(f'#!/bin/sh\necho "$(date +%s) $1" >> {tmp_path}/sleeps\n')
    # the third night ends the test
    (stubs / "job").write_text(
        f"#!/bin/sh\necho night >> {tmp_path}/nights\n"
        f'[ "$(wc -l < {tmp_path}/nights)" -lt 3 ] || kill -TERM "$PPID"\nexit 3\n'
    )
    for stub in stubs.iterdir():
        stub.chmod(0o755)
    environment = {"PATH": f"{stubs}:/usr/bin:/bin", "TZ": "Europe/Berlin"}
    process = subprocess.run(
        [SCRIPTS / "every-night.sh", "03:17", "job"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 143
    assert process.stderr.startswith("every-night: job ended with 3\nevery-night: job ended with 3\n")
    assert len((tmp_path / "nights").read_text().splitlines()) == 3
    for line in (tmp_path / "sleeps").read_text().splitlines():
        begin, seconds = map(int, line.split())
        end = subprocess.run(
            ["date", "-d", f"@{begin + seconds}", "+%H:%M"], env=environment, capture_output=True, text=True, check=True
        )
        assert 0 < seconds <= 25 * 3600
        assert end.stdout == "03:17\n"


@NEEDS_GNU_DATE
def test_every_night_ends_at_once_when_it_is_stopped() -> None:
    """SIGTERM ends the wait, and no process stays behind."""
    with subprocess.Popen([SCRIPTS / "every-night.sh", "03:17", "true"], start_new_session=True) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 143
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("arguments", [(), ("03:17",), ("teatime?", "true"), ("25:00", "true")])
def test_every_night_without_a_time_or_command_is_refused(arguments: tuple[str, ...]) -> None:
    """Without a valid time of day and a command, the script prints its usage and exits with 2."""
    process = subprocess.run([SCRIPTS / "every-night.sh", *arguments], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (2, "usage: every-night HH:MM COMMAND [ARGUMENT ...]\n")


@pytest.mark.slow
@pytest.mark.skipif(PSQL is None, reason="no psql is installed")
def test_scripts_set_up_the_roles_of_a_server(tmp_path: Path) -> None:
    """The scripts make a ledger whose roles are as documented, with passwords; a second setup records nothing."""
    assert PSQL is not None
    with start_own_server() as server:
        url = make_url(server.url)
        environment = {
            "PATH": f"{PROGRAMS}:{PSQL.parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PGHOST": str(url.query["host"]),
            "POSTGRES_USER": str(url.username),
            **{f"RATINGS_{role}_PASSWORD": f"{role}'s" for role in ("OWNER", "WRITER", "REBUILDER", "READER")},
            "RATINGS_DB": url.set(username="ratings_owner", database="ratings").render_as_string(),
        }
        subprocess.run([SCRIPTS / "create-roles.sh"], env=environment, check=True)
        event_counts = []
        for _ in range(2):
            subprocess.run([SCRIPTS / "set-up-postgresql.sh", "--for", "chess"], env=environment, check=True)
            with psycopg.connect(server.url, dbname="ratings") as connection:
                event_counts += connection.execute("SELECT count(*) FROM events").fetchall()
        assert event_counts[0] == event_counts[1] != (0,)
        with psycopg.connect(server.url) as connection:
            query = (
                "SELECT rolname FROM pg_authid WHERE rolname LIKE 'ratings\\_%' AND rolpassword IS NOT NULL ORDER BY 1"
            )
            protected = [name for (name,) in connection.execute(query)]
        assert protected == ["ratings_owner", "ratings_reader", "ratings_rebuilder", "ratings_writer"]

        def run_as(role: str, *arguments: str) -> subprocess.CompletedProcess[str]:
            db = url.set(username=role, database="ratings").render_as_string()
            command = [f"{PROGRAMS}/ratings", "--db", db, *arguments]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

        game = ("record", "--game", "chess", "--game-id", "g-1", "--by", "mira", "mira", "yusuf")
        assert run_as("ratings_reader", *game).returncode == 3
        recorded = run_as("ratings_writer", *game)
        assert recorded.returncode == 0, recorded.stderr
        night = run_as("ratings_rebuilder", "nightly", "--backup", str(tmp_path / "backup"))
        assert night.returncode == 0, night.stderr
        doctor = run_as("ratings_reader", "doctor")
        states = [line.split()[0] for line in doctor.stdout.splitlines() if line.split()[1] == "rights"]
        assert states == ["ok"], doctor.stdout


@pytest.fixture(scope="module")
def image() -> Iterator[tuple[str, str]]:
    """Yield a container engine that works here, and the image that it built."""
    engines = [name for name in ("podman", "docker") if shutil.which(name)]
    working = [name for name in engines if run_quietly(name, "info") == 0]
    if not working:
        pytest.skip(f"no container engine runs here; installed: {', '.join(engines) or 'none'}")
    engine, tag = working[0], f"ratings-ledger-test-{os.getpid()}"
    (version,) = re.findall(r"^ARG PYTHON=(.+)$", CONTAINERFILE, re.MULTILINE)
    base = f"python:{version}-slim"
    if run_quietly(engine, "image", "inspect", base) and run_quietly(engine, "pull", base):
        pytest.skip(f"{engine} cannot get the image {base}")
    subprocess.run([engine, "build", "--tag", tag, "--file", "Containerfile", "."], cwd=ROOT, check=True)
    yield engine, tag
    run_quietly(engine, "rmi", "--force", tag)


def run_quietly(*command: str) -> int:
    """Run a command without its output and return its exit status."""
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_container_runs_the_demo_and_keeps_a_ledger(image: tuple[str, str]) -> None:
    """The image runs the demo without network or root, and a ledger in a volume is there for the next container."""
    engine, tag = image
    volume = f"{tag}-volume"

    def run(*arguments: str, options: tuple[str, ...] = ()) -> str:
        command = [engine, "run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp"]
        process = subprocess.run(
            [*command, "--volume", f"{volume}:/ledger", *options, tag, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    try:
        assert "Next, in a folder of your own" in run()
        assert run("-u", options=("--entrypoint", "id")) == "10001\n"
        run("init", "--for", "chess")
        run("record", "--game", "chess", "--game-id", "g-1", "--by", "mira", "mira", "yusuf")
        assert "mira" in run("standings", "elo-chess/all")
    finally:
        run_quietly(engine, "volume", "rm", "--force", volume)
