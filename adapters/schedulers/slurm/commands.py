"""Slurm's own commands, called so that their output means the same everywhere: UTC times, whole lists, no colours, no prompts."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from xce.domain.errors import PermanentError, TransientError

#: What a user may have set for their own eyes, and what has to be fixed.
_PLAIN: Final = {
    "TZ": "UTC",
    "SLURM_TIME_FORMAT": "standard",
    "SLURM_BITSTR_LEN": "0",
    "LC_ALL": "C",
    "SQUEUE_ALL": "1",  # what is in hidden partitions holds nodes too
    "SINFO_ALL": "1",
    "SCONTROL_ALL": "1",
}
_OWN_PREFIXES: Final = ("SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_DEBUG")


class Run(Protocol):
    """Runs a command of Slurm."""

    def __call__(self, command: Sequence[str]) -> bytes:
        """Return what it prints.

        Raises:
            TransientError: it failed or took too long; the message names it and says why.
            PermanentError: there is no such command.
        """
        ...


class Commands:
    """The commands of one Slurm."""

    def __init__(
        self,
        *,
        conf: str | None = None,
        folder: str | None = None,
        timeout_s: float = 30.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Use the commands in ``folder`` (None: as the path finds them) with a slurm.conf (None: as they find it)."""
        self._folder = folder
        self._timeout_s = timeout_s
        given = os.environ if environment is None else environment
        self._environment = {
            name: value for name, value in given.items() if not name.startswith(_OWN_PREFIXES)
        } | _PLAIN
        if conf is not None:
            self._environment["SLURM_CONF"] = conf

    def __call__(self, command: Sequence[str]) -> bytes:
        """Return what a command prints; see ``Run``."""
        name, *arguments = command
        program = name if self._folder is None else str(Path(self._folder) / name)
        shown = " ".join(command)
        try:
            done = subprocess.run(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout_s,
                env=self._environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TransientError(f"{shown}: no answer within {self._timeout_s:g} s") from None
        except (FileNotFoundError, PermissionError) as error:
            raise PermanentError(f"{program} cannot be run: {error.strerror}") from None
        except OSError as error:
            raise TransientError(f"{program} cannot be run now: {error.strerror}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = said[0] if said else f"exit code {done.returncode}"
            raise TransientError(f"{shown}: {why}")
        return done.stdout
