"""What a file is: which of our configurations, by the keys it has, or which of our documents, by its format."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from xce.adapters.settings.documents import DOCUMENTS
from xce.adapters.settings.load import config_of, model_of
from xce.adapters.settings.yaml_tree import Tree
from xce.domain.errors import InputError
from xce.domain.formats.base import Format
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.controller_config import ControllerConfig
from xce.domain.formats.controller_config import problems as controller_problems
from xce.domain.formats.licence_pool import LicencePool
from xce.domain.formats.provisioner_config import ProvisionerConfig
from xce.domain.formats.provisioner_config import problems as provisioner_problems
from xce.domain.formats.scenario import Scenario
from xce.domain.formats.scenario_check import scenario_contradictions
from xce.domain.formats.scheduler_config import SchedulerConfig
from xce.domain.formats.scheduler_config import problems as scheduler_problems


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of configuration.

    Attributes:
        name: for people.
        command: what reads it.
        model: what it is read as.
        read: reads a tree as that.
    """

    name: str
    command: str
    model: type[Format]
    read: Callable[[Tree, str], Format]


def _checked(model: type[Any], problems: Callable[[Any], Any]) -> Callable[[Tree, str], Format]:
    def read(tree: Tree, source: str) -> Format:
        made: Format = model_of(tree, source, model, problems)
        return made

    return read


#: In the order in which they are thought of, where the keys do not tell.
KINDS: Final[tuple[Kind, ...]] = (
    Kind("simulation", "xce sim swf TRACE --config FILE", SimulationConfig, config_of),
    Kind(
        "scenario",
        "xce sim run FILE",
        Scenario,
        _checked(
            Scenario, lambda made: [(one.loc, one.message) for one in scenario_contradictions(made)]
        ),
    ),
    Kind(
        "controller",
        "xce controller --config FILE",
        ControllerConfig,
        _checked(ControllerConfig, controller_problems),
    ),
    Kind(
        "provisioner",
        "xce provisioner --config FILE",
        ProvisionerConfig,
        _checked(ProvisionerConfig, provisioner_problems),
    ),
    Kind(
        "scheduler",
        "xce scheduler --config FILE",
        SchedulerConfig,
        _checked(SchedulerConfig, scheduler_problems),
    ),
    Kind(
        "licence pool", "xce pool apply BOOK FILE", LicencePool, _checked(LicencePool, lambda _: ())
    ),
)


def kind_of(tree: Tree, source: str) -> tuple[Kind, Format]:
    """Return what kind of configuration a tree is, and what it is read as.

    Raises:
        InputError: it is a document of another kind, and which; or it is wrong, with every problem and its line.
    """
    keys = set(tree.value) if isinstance(tree.value, dict) else set[str]()
    if isinstance(tree.value, dict):
        name = str(tree.value.get("format", "")).partition("/")[0]
        if name in DOCUMENTS:
            what, reads = DOCUMENTS[name]
            raise InputError.of(source, f"is {what} and no configuration; see: {reads}", line=1)
    known = [len(keys & set(kind.model.model_fields)) for kind in KINDS]
    likely = [kind for kind, number in zip(KINDS, known, strict=True) if number == max(known)]
    first: InputError | None = None
    for kind in likely:
        try:
            return kind, kind.read(tree, source)
        except InputError as error:
            first = first or error
    assert first is not None, "there is a likely kind"
    raise first
