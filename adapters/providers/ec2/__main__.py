"""One script of the provider: ``python -m xce.adapters.providers.ec2 SCRIPT -f FILE``."""

import json
import os
import sys
import time
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from xce.domain.errors import InputError


def main(arguments: list[str]) -> int:
    """Run one script; the answer, or why there is none, goes to standard output."""
    if find_spec("boto3") is None:
        return _failed("Error Code: MissingLibrary: boto3 is not installed; pip install 'xce[ec2]'")
    from xce.adapters.clock import SystemClock
    from xce.adapters.providers.ec2.cloud import Cloud
    from xce.adapters.providers.ec2.errors import RefusedError, UnansweredError
    from xce.adapters.providers.ec2.scripts import SCRIPTS, Scripts
    from xce.adapters.providers.ec2.settings import read_settings

    if len(arguments) != 3 or arguments[0] not in SCRIPTS or arguments[1] != "-f":
        print("wanted: SCRIPT -f FILE", file=sys.stderr)
        return 2
    script, _, file = arguments
    try:
        settings, folder = read_settings(Path(os.environ["PRO_CONF_DIR"]))
    except KeyError:
        return _failed("Error Code: InvalidConfiguration: the environment has no PRO_CONF_DIR")
    except InputError as error:
        return _failed(f"Error Code: InvalidConfiguration: {error}")
    try:
        given: Any = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return _failed(f"the input cannot be read: {error}")
    if not isinstance(given, dict):
        return _failed("the input is no object")
    try:
        cloud = Cloud(settings, time.sleep)
        faces = Scripts(settings, folder, cloud, SystemClock().now, lambda: uuid.uuid4().hex)
        answer = SCRIPTS[script](faces, cast("dict[str, Any]", given))
    except RefusedError as error:
        return _failed(str(error), error.retry_after_s)
    except UnansweredError as error:
        # No object: to the caller that means that nobody knows.
        print(f"unknown outcome: {error}")
        return 0
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return _failed(f"the input is not understood: {error!r}")
    print(json.dumps(answer))
    return 0


def _failed(message: str, retry_after_s: int | None = None) -> int:
    said: dict[str, Any] = {"message": message}
    if retry_after_s is not None:
        said["retryAfter"] = retry_after_s
    print(json.dumps(said))
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
