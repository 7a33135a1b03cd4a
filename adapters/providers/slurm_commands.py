"""Slurm's commands, as a provider's program runs them. Standard library only."""

import os
import shutil
import subprocess
from typing import Final

from xce.adapters.providers.program import RefusalError

_COMMAND_S: Final = 30.0


class SlurmError(RefusalError):
    """A command of Slurm's failed: a daemon may be away."""


def run(conf: str, *words: str) -> str:
    """Run a command about the cluster of a slurm.conf and return what it prints.

    Raises:
        SlurmError: it failed, or took too long.
    """
    kept = {k: v for k, v in os.environ.items() if k.startswith(("PATH", "LC_", "HOME"))}
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"
    program = shutil.which(words[0], path=path)
    if program is None:
        raise SlurmError(f"{words[0]} is not installed")
    try:
        ran = subprocess.run(
            [program, *words[1:]],
            env={**kept, "SLURM_CONF": conf},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{words[0]} took longer than {_COMMAND_S:g} s") from None
    if ran.returncode:
        raise SlurmError(f"{' '.join(words)}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout
