"""Fetches the corpus: the wheels of requirements.txt, unpacked into the user's cache folder once, whatever the number of runs."""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def corpus() -> Path:
    """The folder with the packages side by side. Raises CalledProcessError when a wheel cannot be had or has another hash."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuvil-tests"
    folder = cache / f"corpus-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            wheels, unpacked = Path(temporary, "wheels"), Path(temporary, "unpacked")
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "--only-binary=:all:",
                            "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "--platform", "any", "-r", REQUIREMENTS, "-d", wheels], check=True, timeout=600)
            for wheel in wheels.iterdir():
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(unpacked, [name for name in archive.namelist() if name.endswith(".py")])
            unpacked.rename(folder)
    return folder
