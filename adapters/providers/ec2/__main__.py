"""One script of the provider: ``python -m xce.adapters.providers.ec2 SCRIPT -f FILE``."""

import os
import sys
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from xce.adapters.providers.program import RefusalError, refuse, run
from xce.domain.errors import InputError

if TYPE_CHECKING:
    from xce.adapters.providers.ec2.scripts import Scripts


def main(arguments: list[str]) -> int:
    """Run one script; the answer, or why there is none, goes to standard output."""
    if find_spec("boto3") is None:
        why = "Error Code: MissingLibrary: boto3 is not installed; pip install 'xce[ec2]'"
        return refuse(RefusalError(why))
    from xce.adapters.providers.ec2.errors import UnansweredError
    from xce.adapters.providers.ec2.scripts import SCRIPTS

    try:
        return run(arguments, SCRIPTS, _scripts)
    except UnansweredError as error:
        # No object: to the caller that means that nobody knows.
        print(f"unknown outcome: {error}")
        return 0


@contextmanager
def _scripts() -> Generator["Scripts"]:
    from xce.adapters.clock import SystemClock
    from xce.adapters.providers.ec2.cloud import Cloud
    from xce.adapters.providers.ec2.scripts import Scripts
    from xce.adapters.providers.ec2.settings import read_settings

    try:
        settings, folder = read_settings(Path(os.environ["PRO_CONF_DIR"]))
    except KeyError:
        why = "Error Code: InvalidConfiguration: the environment has no PRO_CONF_DIR"
        raise RefusalError(why) from None
    except InputError as error:
        raise RefusalError(f"Error Code: InvalidConfiguration: {error}") from None
    cloud = Cloud(settings, time.sleep)
    yield Scripts(settings, folder, cloud, SystemClock().now, lambda: uuid.uuid4().hex)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
