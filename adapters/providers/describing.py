"""What a provider is: what its scripts say, what the settings say, and the last of it that was good."""

from xce.adapters.providers import answers
from xce.adapters.providers.reading import Answered
from xce.adapters.providers.runner import Runner
from xce.domain.errors import Problem, TransientError
from xce.domain.formats.provider import (
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.formats.provider_messages import (
    GetAvailableResourcesAnswer,
    ListGrantsAnswer,
    Nothing,
    NotUnderstoodError,
    understood,
)
from xce.domain.formats.script_output import Message, as_object, plain

_TEMPLATES = "getAvailableTemplates"
_DESCRIPTION = "getProviderDescription"
_RESOURCES = "getAvailableResources"


class Describing:
    """The description of one provider."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._good = self._kept()
        self.problems: tuple[Problem, ...] = ()
        """What was wrong with the last templates, which were left out."""

    def known(self) -> ProviderDescription:
        """Return the last good description, or what the settings say, without a call."""
        if self._good is not None:
            return self._good
        if self._runner.settings.description is not None:
            return self._configured()
        return ProviderDescription(name=self._runner.settings.name, contract=1)

    def ask(self) -> ProviderDescription | None:
        """Ask the scripts; None: they failed, or have no offer at all, and the last good description holds."""
        with self._runner.alone():
            said = self._described()
            templates = self._templates()
            resources = self._resources()
            if said is None or templates is None or resources is None:
                return None
            said = said.model_copy(
                update={
                    "templates": templates or said.templates,
                    "resources": resources or said.resources,
                }
            )
            made = answers.merged(
                self._configured(),
                said,
                configured_wins=self._runner.settings.prefer_configured,
            )
            if not made.templates and not made.resources:
                return None
            checks = self._runner.has("checkMachines")
            able = made.capabilities.model_copy(update={"health_check": checks})
            made = made.model_copy(update={"capabilities": able})
            if made != self._good:
                kept = as_object(plain(made.model_dump(mode="json")))
                assert kept is not None, "a model is an object"
                self._runner.folder.keep_description(kept)
                self._good = made
            return made

    def _configured(self) -> ProviderDescription:
        settings = self._runner.settings
        configured = settings.description
        if configured is None:
            return ProviderDescription(name=settings.name)
        return configured.model_copy(update={"name": settings.name})

    def _kept(self) -> ProviderDescription | None:
        message = self._runner.folder.description()
        if message is None:
            return None
        try:
            return understood(ProviderDescription, message)
        except NotUnderstoodError:
            return None  # of another release

    def _message(self, script: str) -> Message | None:
        """Return the answer of a script that is asked for all there is; None: it failed."""
        try:
            heard = self._runner.call(script, Nothing())
        except TransientError:
            return None
        self._runner.heard()
        return heard.message if isinstance(heard, Answered) else None

    def _described(self) -> ProviderDescription | None:
        name = self._runner.settings.name
        if not self._runner.has(_DESCRIPTION):
            return ProviderDescription(name=name, contract=1)
        message = self._message(_DESCRIPTION)
        if message is None:
            return None
        try:
            return read_description(message, name)
        except NotUnderstoodError:
            return None

    def _templates(self) -> tuple[TemplateOffer, ...] | None:
        """Return the offers; () where there is no such script, None where it failed or has none at the moment."""
        if not self._runner.has(_TEMPLATES):
            return ()
        message = self._message(_TEMPLATES)
        if message is None:
            return None
        try:
            offers, self.problems = answers.template_offers(
                message, self._runner.settings.slots_from
            )
        except NotUnderstoodError:
            return None
        return offers or None

    def _resources(self) -> tuple[ResourceOffer, ...] | None:
        if not self._runner.has(_RESOURCES):
            return ()
        message = self._message(_RESOURCES)
        if message is None:
            return None
        held: dict[str, int] = {}
        if self._runner.has("listGrants"):
            grants = self._message("listGrants")
            if grants is None:
                return None
            try:
                for one in understood(ListGrantsAnswer, grants).grants:
                    held[one.resource] = held.get(one.resource, 0) + one.amount
            except NotUnderstoodError:
                return None
        try:
            listed = understood(GetAvailableResourcesAnswer, message).resources
            return tuple(answers.resource_offer(one, held.get(one.name, 0)) for one in listed)
        except NotUnderstoodError:
            return None


def read_description(message: Message, name: str) -> ProviderDescription:
    """Return what ``getProviderDescription`` answered, under the name that the provider has here.

    Keys that we do not know are kept among the attributes where they are plain values; times may be seconds.

    Raises:
        NotUnderstoodError: something that we know is wrong.
    """
    known = {field.alias or key: key for key, field in ProviderDescription.model_fields.items()}
    fields = {key: value for key, value in message.items() if key in known and value is not None}
    others = {
        key: value
        for key, value in message.items()
        if key not in known and isinstance(value, str | int | float | bool)
    }
    own = fields.get("attributes")
    fields["attributes"] = {**others, **(own if isinstance(own, dict) else {})}
    fields["name"] = name
    fields.setdefault("contract", 2)
    kinds = fields.get("kinds")
    if isinstance(kinds, str):
        fields["kinds"] = [kinds]
    capabilities = fields.get("capabilities")
    if isinstance(capabilities, list):
        fields["capabilities"] = {str(one): True for one in capabilities}
    return understood(ProviderDescription, fields)
