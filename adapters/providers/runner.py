"""Calls of one provider's scripts, one at a time; what an earlier process left running is ended first, and what it heard is read."""

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from xce.adapters.providers import call
from xce.adapters.providers.call import Ran
from xce.adapters.providers.environment import environment_of, find_scripts, given_secrets
from xce.adapters.providers.evidence import Evidence, evidence_of, secrets_of
from xce.adapters.providers.folder import ProviderFolder
from xce.adapters.providers.reading import Answered, Failed, Unclear, hushed, read
from xce.domain.errors import TransientError
from xce.domain.formats.provider_messages import Given
from xce.domain.formats.script_provider import ScriptSettings

Reading: TypeAlias = Answered | Failed | Unclear
#: Old calls are looked for once in so many calls.
_PRUNE_EVERY: Final = 100


class Runner:
    """The scripts of one provider, and what running them takes."""

    def __init__(
        self,
        settings: ScriptSettings,
        folder: Path,
        on_call: Callable[[Evidence], None] | None = None,
        left_s: Callable[[], float] | None = None,
    ) -> None:
        """Prepare; ``left_s`` says for how many seconds from now a script may begin, None: at any time."""
        self.settings = settings
        self.folder = ProviderFolder(folder)
        self.scripts = find_scripts(Path(settings.folder))
        if settings.health_check is not None:
            self.scripts["checkMachines"] = Path(settings.health_check).absolute()
        given = given_secrets(settings)
        self._environment = environment_of(
            settings,
            conf=Path(settings.conf or settings.folder).absolute(),
            data=self.folder.data,
            logs=self.folder.logs,
            secrets=given,
        )
        self._secrets = secrets_of(self._environment, settings.secrets)
        self._limits = call.Limits(settings.call_limit.total_seconds(), settings.output_limit)
        self._on_call = on_call
        self._left_s = left_s
        self._lock = threading.RLock()
        self._calls = 0
        self._taken_over = False

    def has(self, script: str) -> bool:
        """Return whether there is such a script."""
        return script in self.scripts

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Let nobody else call a script of this provider meanwhile."""
        with self._lock:
            yield

    def call(
        self, script: str, given: Given, *, subject: str = "", key: str | None = None, tag: str = ""
    ) -> Reading:
        """Run a script and return what it says.

        Args:
            script: one that there is.
            given: its input.
            subject: what the call is about, for the evidence.
            key: under which the run is found again by ``recall``; None: it need not be.
            tag: of the request, for the script's environment.

        Raises:
            TransientError: it could not be started, so nothing has happened.
        """
        with self._lock:
            self.take_over()
            self._calls += 1
            if self._calls % _PRUNE_EVERY == 0:
                self.folder.prune(self.settings.keep_calls)
            if key is None:
                folder = self.folder.passing_call(script)
                call.discard(folder)  # of a process that had our number
            else:
                folder = self.folder.kept_call(script, key)
            path = self.scripts[script]
            try:
                ran = call.run(
                    path,
                    given.to_json(),
                    folder,
                    self.environment(tag),
                    self._limits,
                    self._left_s,
                )
            except call.TooLateError:
                call.discard(folder)
                raise TransientError(
                    f"{script} was not started: we may not act on the provider any more"
                ) from None
            except OSError as error:
                call.discard(folder)
                raise TransientError(
                    f"{script} could not be started: {os.strerror(error.errno or 0)}"
                ) from None
            reading = self._read(ran, script, subject)
            if key is None:
                self._done = folder
            return reading

    def environment(self, tag: str = "") -> dict[str, str]:
        """Return all that a script finds in its environment, with the tag of a request."""
        return {**self._environment, **({"XCE_REQUEST_TAG": tag} if tag else {})}

    def recall(self, script: str, key: str, *, subject: str = "") -> Reading | None:
        """Return what an earlier run under a key said, after its end; None: it is certain that there was none on this machine."""
        with self._lock:
            self.take_over()
            folder = self.folder.kept_call(script, key)
            if not folder.exists():
                return None
            if call.never_ran(folder):
                call.discard(folder)
                return None
            return self._read(self._found(script, folder), script, subject)

    def take_over(self) -> None:
        """End, or wait for, what an earlier process left running, so that at most one script of the provider runs. Done once."""
        if self._taken_over:
            return
        self._taken_over = True
        for folder in (self.folder.path / "calls").iterdir():
            if not (folder / "exit").exists():
                self._settle(folder)

    def unread(self) -> Iterator[tuple[str, Reading]]:
        """Yield what scripts said to a process that died before it could read it, each once it was taken up only."""
        with self._lock:
            self.take_over()
            for script, folder in self.folder.passing_calls():
                if script in self.scripts:
                    yield script, self._read(self._found(script, folder), script, "")
                call.discard(folder)

    def heard(self) -> None:
        """What the last call without a key said is in safety: its run is not needed any more."""
        with self._lock:
            if self._done is not None:
                call.discard(self._done)
                self._done = None

    _done: Path | None = None

    def _settle(self, folder: Path) -> bool:
        """Return whether the run in a folder ended by itself; else it is killed."""
        ended = call.wait_for(folder, self._limits.time_s) and (folder / "exit").exists()
        if not ended:  # also where its shell is gone, or could not say that it runs
            call.end_all(folder)
        return ended

    def _found(self, script: str, folder: Path) -> Ran:
        return call.found(self.scripts[script], folder, self._limits)

    def _read(self, ran: Ran, script: str, subject: str) -> Reading:
        reading = hushed(read(ran, self.settings.output_limit), self._secrets)
        if self._on_call is not None:
            self._on_call(
                evidence_of(
                    ran,
                    script=script,
                    subject=subject,
                    step=reading.step,
                    secrets=self._secrets,
                    limit=self.settings.evidence_limit,
                )
            )
        return reading
