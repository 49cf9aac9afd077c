"""Build the wheel from the source distribution, and install it into an environment of its own, as users do."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import sqlalchemy

ROOT = Path(__file__).parent.parent
DEPENDENCIES = Path(sqlalchemy.__file__).parent.parent


def build_package(sources: Path, kind: str, folder: Path) -> Path:
    """Build a `wheel` or an `sdist` from a folder of sources into a new folder, and return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (package,) = folder.iterdir()
    return package


def build_wheel(folder: Path) -> Path:
    """Build the wheel below a folder, from the unpacked source distribution alone."""
    with tarfile.open(build_package(ROOT, "sdist", folder / "sdist")) as archive:
        archive.extractall(folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    return build_package(sources, "wheel", folder / "wheel")


def create_environment(folder: Path, *packages: Path) -> Path:
    """Create an environment with these packages and return its site-packages.

    Nothing is downloaded: the dependencies are those of the tests, behind the packages. The project's own checkout is
    not among them, since a `.pth` file counts only in a site-packages.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder / "bin" / "python",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
    ]
    subprocess.run([*pip, "--disable-pip-version-check", *packages], check=True)
    (site_packages,) = (folder / "lib").glob("python3.*/site-packages")
    (site_packages / "dependencies.pth").write_text(f"{DEPENDENCIES}\n", encoding="utf-8")
    return site_packages


def run_in_environment(folder: Path, cwd: Path, *command: str) -> str:
    """Run a program of an environment in a folder, check that it succeeds, and return its stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    completed = subprocess.run(
        [folder / "bin" / command[0], *command[1:]],
        cwd=cwd,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
