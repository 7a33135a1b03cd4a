"""What a script answered to an ask or a return: accepted, refused, or nobody knows."""

from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.providers.reading import FAILED, Answered, Failed, Unclear, failure_of
from xce.domain.formats.error_codes import error_code
from xce.domain.formats.provider_messages import (
    NotUnderstoodError,
    RequestAnswer,
    understood,
)
from xce.domain.formats.script_output import Message
from xce.domain.ports import Accepted, Refused

#: Ids behind this length are no ids.
_ID_MAX = 256


def accepted_or_refused(reading: Answered | Failed | Unclear, script: str) -> Accepted | Refused:
    """Return what was answered.

    Raises:
        OutcomeUnknownError: the answer says neither, or says both.
    """
    if isinstance(reading, Unclear):
        raise OutcomeUnknownError(f"{script}: {reading.why}")
    if isinstance(reading, Failed):
        answer = _answer(reading.message) if reading.message is not None else None
        if answer is not None and answer.request_id:
            raise OutcomeUnknownError(
                f"{script} failed and names the request {answer.request_id}: {reading.why}",
                suspect=answer.request_id,
            )
        return Refused(reading.code, reading.why, answer.retry_after if answer else None)
    answer = _answer(reading.message)
    if answer is None:
        raise OutcomeUnknownError(f"{script} answered an id that is none")
    if answer.request_id:
        return Accepted(answer.request_id)
    why = failure_of(reading.message)
    if not why:
        raise OutcomeUnknownError(f"{script} answered without a requestId and without a message")
    return Refused(error_code(why) or FAILED, why, answer.retry_after)


def _answer(message: Message) -> RequestAnswer | None:
    try:
        answer = understood(RequestAnswer, message)
    except NotUnderstoodError:
        return None
    return answer if len(answer.request_id) <= _ID_MAX and answer.request_id.isprintable() else None
