"""Ray's bin-packing scheduler on the same inputs: ``python -m benchmarks.ray_side [JOBS ...]``; needs the extra ``bench``.

Ray's autoscaler v2 and our session get the same jobs and templates, one after the other on this machine. CPU seconds are of one call each; for Ray
that is ``ResourceDemandScheduler.schedule``, for us ``run_session``. Only jobs without gangs are compared: the two do not mean the same by a gang.
"""

import importlib
import sys
import time
from collections import Counter
from typing import Any, Final

from benchmarks.demand import Job, measure, snapshot, workload

_SIZES: Final = (1000, 2000)


def ray_schedule(templates: list[Job], jobs: list[Job]) -> tuple[float, Counter[str]]:
    """Return the CPU seconds of Ray's scheduler, and the hosts that it asks for by template."""
    scheduler = importlib.import_module("ray.autoscaler.v2.scheduler")
    config = importlib.import_module("ray.autoscaler.v2.instance_manager.config")
    utils = importlib.import_module("ray.autoscaler.v2.utils")
    types = {
        entry["name"]: config.NodeTypeConfig(
            name=entry["name"],
            min_worker_nodes=0,
            max_worker_nodes=entry["max"],
            resources=_resources(entry),
        )
        for entry in templates
    }
    bundles = [utils.ResourceRequestUtil.make(_resources(job)) for job in jobs]
    request = scheduler.SchedulingRequest(
        disable_launch_config_check=True,
        node_type_configs=types,
        max_num_nodes=None,
        resource_requests=utils.ResourceRequestUtil.group_by_count(bundles),
    )
    before = time.process_time()
    reply = scheduler.ResourceDemandScheduler(event_logger=None).schedule(request)
    seconds = time.process_time() - before
    asked: Counter[str] = Counter()
    for launch in reply.to_launch:
        asked[launch.instance_type] += launch.count
    return seconds, asked


def _resources(entry: Job) -> dict[str, float]:
    amounts: dict[str, Any] = {"CPU": entry["cpu"], "memory": entry["mem"], "GPU": entry["gpu"]}
    return {name: float(amount) for name, amount in amounts.items() if amount}


def main() -> None:
    """Run both and print a line for each input."""
    try:
        importlib.import_module("ray.autoscaler.v2.scheduler")
    except ImportError:
        print("ray is not installed (the extra bench): nothing compared")
        return
    make = workload()
    for shapes in ("few", "many"):
        for size in [int(text) for text in sys.argv[1:]] or _SIZES:
            templates, jobs = make.make(size, shapes, 0.0)
            bound = make.lower_bound(templates, jobs)
            ours = measure(shapes, snapshot(templates, jobs), size, 1, bound)
            seconds, asked = ray_schedule(templates, jobs)
            prices = {entry["name"]: entry["price"] for entry in templates}
            price = sum(prices[name] * count for name, count in asked.items()) / bound
            print(
                f"{shapes:5} {size:6} jobs  xce {ours.cpu_s:7.3f} s {ours.ratio:.4f} x bound"
                f"   Ray {seconds:8.2f} s {price:.4f} x bound   {seconds / ours.cpu_s:.0f} times as long"
            )


if __name__ == "__main__":
    main()
