"""What a provider does when things go wrong: input that is none, ids that it does not know, a script that is killed."""

import json
from collections.abc import Sequence

from xce.adapters.providers.check.hosts import request_of, room_of
from xce.adapters.providers.check.trial import Trial, is_settled, kill_midway, run_raw
from xce.adapters.providers.reading import Answered, Failed
from xce.adapters.providers.requests import accepted_or_refused
from xce.adapters.providers.statuses import read_statuses
from xce.domain.errors import AdapterError
from xce.domain.formats.provider import TemplateOffer
from xce.domain.formats.provider_messages import GetRequestStatus, RequestId, StatusOfRequest
from xce.domain.ports import Accepted, MachineResult

_STATUS = "getRequestStatus"
_REQUEST = "requestMachines"
_UNKNOWN = "no-such-request"
_NO_TEMPLATE = "no-such-template"
#: A script is killed at these parts of the time that it took before.
_KILLS = (0.3, 0.7)


def try_faults(trial: Trial, template: TemplateOffer | None) -> None:
    """Try what goes wrong; anything that comes of it is given back in the end."""
    _try_unknown_request(trial)
    if template is None or not trial.runner.has(_REQUEST):
        return
    if trial.hangs(_REQUEST) or _REQUEST not in trial.seconds:
        trial.findings.skipped("faults of requests", f"{_REQUEST} does not end")
        return
    _try_unknown_template(trial)
    _try_bad_input(trial)
    _try_killed(trial, template)


def _try_unknown_request(trial: Trial) -> None:
    if not trial.runner.has(_STATUS) or trial.hangs(_STATUS):
        return
    known = next(iter(trial.made.requests), None)
    given = GetRequestStatus(requests=(RequestId(request_id=_UNKNOWN),))
    heard = trial.call(_STATUS, given)
    if heard.step == "killed":
        trial.findings.broken(
            "unknown request", "asked after a request that it does not know: no answer"
        )
        return
    if isinstance(heard, Answered):
        said = read_statuses(heard.message).get(_UNKNOWN)
        if isinstance(said, StatusOfRequest) and any(
            one.result is not MachineResult.FAIL for one in said.machines
        ):
            trial.findings.broken("unknown request", "has machines, though it was never made")
            return
        how = said.status.value if isinstance(said, StatusOfRequest) else "not mentioned"
    else:
        how = "a failure" if isinstance(heard, Failed) else "an answer that cannot be read"
    trial.findings.ok("unknown request", f"is {how}")
    if known is not None:
        _try_batch(trial, (known, _UNKNOWN))


def _try_batch(trial: Trial, ids: Sequence[str]) -> None:
    given = GetRequestStatus(requests=tuple(RequestId(request_id=one) for one in ids))
    heard = trial.call(_STATUS, given)
    said = read_statuses(heard.message).get(ids[0]) if isinstance(heard, Answered) else None
    if heard.step == "killed":
        trial.findings.broken("several requests", "asked after at once: no answer")
    elif said is None or isinstance(said, AdapterError):
        trial.findings.noted("several requests", "an unknown id spoils the answer for the others")
    else:
        trial.findings.ok("several requests", "can be asked after at once")


def _try_unknown_template(trial: Trial) -> None:
    tag = trial.new_tag()
    answer = trial.ask(_REQUEST, request_of(trial, _NO_TEMPLATE, 1, tag), tag)
    if isinstance(answer, str):
        trial.findings.broken("unknown template", f"not refused: {answer}")
    elif not isinstance(answer, Accepted):
        trial.findings.ok("unknown template", "is refused")
    else:
        status, done = trial.wait_for(answer.provider_request_id, is_settled)
        if (
            isinstance(status, StatusOfRequest)
            and done
            and not any(one.result is MachineResult.SUCCEED for one in status.machines)
        ):
            trial.findings.noted("unknown template", "is accepted at first, and brings nothing")
        else:
            trial.findings.noted(
                "unknown template", f"is accepted, as {answer.provider_request_id}"
            )


def _try_bad_input(trial: Trial) -> None:
    """Give input that is no JSON, and JSON that is no request: nothing may be accepted."""
    for what, text in (("is no JSON", "{"), ("names no template", json.dumps({"template": {}}))):
        heard = run_raw(trial, _REQUEST, text)
        if heard.step == "killed":
            trial.findings.broken("bad input", f"input that {what}: no answer")
            return
        try:
            answer = accepted_or_refused(heard, _REQUEST)
        except AdapterError:
            continue
        if isinstance(answer, Accepted):
            trial.made.requests.setdefault(answer.provider_request_id, _REQUEST)
            trial.wait_for(answer.provider_request_id, is_settled)
            trial.findings.noted("bad input", f"input that {what} is accepted")
            return
    trial.findings.ok("bad input", "is not accepted")


def _try_killed(trial: Trial, template: TemplateOffer) -> None:
    """Kill requests midway: what came of each must be found by its tag, or in the list."""
    capabilities = trial.description.capabilities
    if not capabilities.request_tag:
        trial.findings.skipped(
            "killed request", "needs request tags: what came of it could not be found"
        )
        return
    minimum = trial.description.granularity.minimum
    if room_of(trial, template) < len(trial.made.machines) + len(_KILLS) * minimum:
        trial.findings.skipped("killed request", f"{template.template_id} has no room for it")
        return
    took = trial.seconds[_REQUEST]
    trial.listed()
    for part in _KILLS:
        tag = trial.new_tag()
        given = request_of(trial, template.template_id, trial.description.granularity.minimum, tag)
        kill_midway(trial, _REQUEST, given, tag, took * part)
        first = trial.ask(_REQUEST, given, tag)
        again = trial.ask(_REQUEST, given, tag)
        if not isinstance(first, Accepted) or not isinstance(again, Accepted):
            bad = again if isinstance(first, Accepted) else first
            why = bad if isinstance(bad, str) else getattr(bad, "why", "")
            trial.findings.broken("killed request", f"repeated with its tag: {why}")
            return
        if first.provider_request_id != again.provider_request_id:
            trial.findings.broken("killed request", "repeated with its tag, it is made twice")
            return
        trial.wait_for(first.provider_request_id, is_settled)
        owned = set(trial.made.machines)
        trial.listed()
        if extra := trial.made.machines.keys() - owned:
            trial.findings.broken(
                "killed request", f"made machines that no request has: {', '.join(sorted(extra))}"
            )
            return
    trial.findings.ok("killed request", "is the same request when it is repeated with its tag")
