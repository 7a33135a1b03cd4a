"""The end of a run in which a promise was broken."""


class BrokenPromiseError(BaseException):
    """The run ends here: nothing between may eat it.

    Attributes:
        promise: which one, short and stable: ``invariant-4``.
    """

    def __init__(self, promise: str, message: str) -> None:
        super().__init__(f"{promise}: {message}")
        self.promise = promise
