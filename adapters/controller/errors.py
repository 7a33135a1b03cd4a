"""Why a controller takes nothing now: all of them pass, or another controller does it."""

from xce.domain.errors import TransientError


class NotPrimaryError(TransientError):
    """This controller does not own the log (any more, or not yet): ask the one that does."""

    code = "not-primary"


class ServedError(TransientError):
    """Another controller serves this log: talk to that one, or end it first."""

    code = "served"


class BusyError(TransientError):
    """Too many orders wait: come again in a moment."""

    code = "busy"


class StoppingError(TransientError):
    """The controller is about to end: nothing more is taken."""

    code = "stopping"


class NotReadyError(TransientError):
    """The controller does not take orders now."""

    code = "not-ready"
