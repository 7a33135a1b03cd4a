"""A PostgreSQL server of the tests' own: made in a temporary folder from the installed programs, on a free loopback port, ended with the tests.

Where the programs are missing the tests skip, with the reason; where XCE_REQUIRE_POSTGRESQL is set they fail.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from itertools import count
from pathlib import Path

import psycopg
import pytest

#: Debian keeps the server's programs in a folder for each version.
FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
PASSWORD = "p@ss/w:rd?#1"


class Server:
    """One server; ``stop`` and ``start`` may be called again and again."""

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self._folder = folder
        self._programs = programs
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self.port = 0
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        if user is not None:
            for path in (folder, secret):
                shutil.chown(path, user)
        self._run(
            "initdb", "--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale",
            "--username=tester", f"--pwfile={secret}",
        )  # fmt: skip
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, "-D", self._folder / "data", *arguments],
            user=self._user, cwd=self._folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run(
            "pg_ctl", "--wait", "--silent", "-l", str(self._folder / "log"), "-o",
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=16MB"
            " -c max_connections=100",
            "start",
        )  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop it and wait until it is gone; a client in the middle of something loses its connection."""
        self._run("pg_ctl", "--wait", "--silent", "-m", mode, "stop")

    def log(self) -> str:
        """Return what the server has written."""
        return (self._folder / "log").read_text(errors="replace")

    def address(self, schema: str | None = None, *, database: str = "postgres") -> str:
        """Return the address of a log: a new one each time, unless the schema is named. The password comes from the environment."""
        schema = schema or f"log{next(self._numbers)}"
        return f"postgresql://tester@127.0.0.1:{self.port}/{database}?schema={schema}"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Return a session beside those of the log."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="tester", password=PASSWORD, dbname="postgres", autocommit=True
        )  # fmt: skip


def programs() -> Path | None:
    """Return the folder of the server's programs."""
    found = shutil.which("initdb")
    folders = ([] if found is None else [Path(found).resolve().parent]) + FOLDERS
    needed = ("initdb", "pg_ctl", "postgres")
    return next((f for f in folders if all((f / name).is_file() for name in needed)), None)


def server(folder_of: str | None = None) -> Generator[Server]:
    """Yield a running server; its data are in a folder of their own, in ``folder_of`` or where temporary files go."""
    folder = programs()
    if folder is None:
        if os.environ.get("XCE_REQUIRE_POSTGRESQL"):
            pytest.fail(
                "XCE_REQUIRE_POSTGRESQL is set and there is no PostgreSQL server on this machine"
            )
        pytest.skip("no PostgreSQL server on this machine: apt-get install postgresql")
    user = ("postgres" if _exists("postgres") else "nobody") if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="xce-postgresql-", dir=folder_of) as name:
        running = Server(Path(name), folder, user)
        running.start()
        try:
            yield running
        finally:
            running.stop()


def _exists(user: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
