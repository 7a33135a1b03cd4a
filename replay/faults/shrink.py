"""From a failing run to a small one: which few of its faults are enough to break the same promise."""

from collections.abc import Callable, Collection

from xce.replay.faults.world import Outcome

#: Runs of the site of a seed with only these faults.
Run = Callable[[Collection[str]], Outcome]


def shrink(failed: Outcome, run: Run, *, runs_max: int = 200) -> Outcome:
    """Return an outcome that breaks the same promise with fewer faults, none of which can be left out alone.

    Delta debugging: larger parts are left out first. Ends after ``runs_max`` runs with the smallest that was found.
    """
    best = failed
    again = run(failed.faults)
    runs = 1
    if again.promise != failed.promise:
        return failed  # it needs what did not happen, too: it cannot be told in this way
    best, size = again, max(1, len(again.faults) // 2)
    while runs < runs_max:
        smaller = None
        for start in range(0, len(best.faults), size):
            kept = best.faults[:start] + best.faults[start + size :]
            tried = run(kept)
            runs += 1
            if tried.promise == failed.promise and len(tried.faults) < len(best.faults):
                smaller = tried
                break
            if runs >= runs_max:
                break
        if smaller is not None:
            best = smaller
            size = min(size, max(1, len(best.faults) // 2))
        elif size == 1 or not best.faults:
            break
        else:
            size //= 2
    return best
