"""Runs on a Dask cluster that is there already, given by the address of its scheduler (extra ``dask``).

Its workers need xce of the same release. The library is loaded by name: nothing else needs it.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from xce.adapters.comparison.processes import Failed, Told
from xce.adapters.comparison.runs import Run, carry_out
from xce.domain.errors import InputError, TransientError
from xce.domain.formats.comparison import RunOutcome
from xce.replay.workloads.workload import Workload

CONNECT_TIMEOUT_S: Final = 30


def on_dask(
    address: str, runs: Sequence[Run], workloads: Mapping[str, Workload], told: Told
) -> Iterator[RunOutcome | Failed]:
    """Carry runs out on a cluster and yield what comes of them, as they end.

    Raises:
        InputError: the library is not installed, or the address is none.
        TransientError: nobody answers there.
    """
    if find_spec("distributed") is None:
        raise InputError.of("--dask", "needs Dask; install it with: pip install 'xce[dask]'")
    distributed: Any = import_module("distributed")
    _require_address(address)
    try:
        client: Any = distributed.Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except OSError as error:  # TimeoutError is one
        raise TransientError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        # Each workload goes to the cluster once.
        there: dict[str, Any] = {}
        for digest in dict.fromkeys(run.digest for run in runs):
            there[digest] = client.scatter([workloads[digest]], hash=False)[0]
        futures: dict[Any, Run] = {
            client.submit(_carry_out, run, there[run.digest], key=f"xce-{run.key}"): run
            for run in runs
        }
        for future in distributed.as_completed(list(futures), loop=client.loop):
            run = futures[future]
            if future.status == "finished":
                told(run.key, run.jobs)
                yield RunOutcome.from_json(future.result(), run.key)
            else:
                yield Failed(run, f"{future.status}: {future.exception()}")


def _require_address(address: str) -> None:
    """Check an address before anything is made of it: a client that cannot begin takes long to end."""
    addressing: Any = import_module("distributed.comm.addressing")
    registry: Any = import_module("distributed.comm.registry")
    try:
        scheme, place = addressing.parse_address(address)
        registry.get_backend(scheme)
        if scheme in ("tcp", "tls"):
            addressing.parse_host_port(place)  # with its port: a client guesses none
    except ValueError as error:
        raise InputError.of("--dask", f"{address!r} is no address: {error}") from None


def _carry_out(run: Run, workload: Workload) -> str:
    """Run on a worker; a text travels better than a class."""
    return carry_out(run, workload).to_json()
