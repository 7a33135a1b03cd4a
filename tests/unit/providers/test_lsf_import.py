"""Moving from the LSF resource connector: its files become our configuration, and every slip is named with file and line."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.adapters.providers.lsf_files import (
    read_host_providers,
    read_policies,
    read_queues,
    read_templates,
)
from xce.adapters.providers.lsf_import import import_lsf
from xce.adapters.settings.load import read_model
from xce.domain.errors import InputError
from xce.domain.formats.policy import AskRate, Budget
from xce.domain.formats.provisioner_config import ProvisionerConfig, problems

MINUTE = timedelta(minutes=1)
TEMPLATE = {
    "templateId": "std8",
    "maxNumber": "10",
    "attributes": {
        "ncpus": ["Numeric", "8"],
        "mem": ["Numeric", "16384"],
        "burst": ["Boolean", "1"],
    },
    "priceInfo": "0.4",
    "imageId": "ami-1",
}
PROVIDER = {
    "name": "aws", "type": "awsProv", "confPath": "resource_connector/aws",
    "scriptPath": "resource_connector/aws", "scriptOption": "-Dx=1",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A resource connector's folder, as below LSF_ENVDIR."""
    root = tmp_path / "resource_connector"
    (root / "aws" / "conf").mkdir(parents=True)
    write(root / "hostProviders.json", {"providers": [PROVIDER]})
    write(root / "aws/conf/awsprov_templates.json", {"templates": [TEMPLATE]})
    return root


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent="\t"))


def wrong(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_lsf(folder, "site")
    return str(caught.value)


def test_what_is_made_can_be_used_as_it_is(folder: Path) -> None:
    made = import_lsf(folder, "site")

    config = read_model(made.provisioner.encode(), "made", ProvisionerConfig, problems)
    (script,) = config.scripts
    assert (script.name, script.folder, script.options) == ("aws", str(folder / "aws"), "-Dx=1")
    assert script.description is not None
    (offer,) = script.description.templates
    assert (offer.template_id, offer.max_number, str(offer.price_per_hour)) == ("std8", 10, "0.4")
    assert offer.provides == {"slots": 8, "mem": 16384}
    assert offer.attributes == {"ncpus": 8, "mem": 16384, "burst": True}
    assert made.warnings == ()


def budgets(folder: Path, *policies: dict[str, object]) -> tuple[list[Budget], tuple[str, ...]]:
    """Return the budgets that policies become, as the provisioner reads them, and the warnings."""
    write(folder / "policy_config.json", {"Policies": list(policies)})
    made = import_lsf(folder, "site")
    config = read_model(made.provisioner.encode(), "made", ProvisionerConfig, problems)
    return list(config.policy.budgets), made.warnings


def test_a_policy_becomes_a_budget_that_says_the_same(folder: Path) -> None:
    write(folder / "hostProviders.json", {"providers": [PROVIDER, {**PROVIDER, "name": "gcp"}]})
    everyone = {"rcAccount": ["all"], "templateName": ["all"], "provider": ["all"]}

    made, warnings = budgets(
        folder,
        {"Name": "whole", "Consumer": everyone, "MaxNumber": "100", "StepValue": "5:10"},
        {"Name": "one", "Consumer": {"provider": ["aws"]}, "MaxNumber": 20},
        {"Name": "both", "Consumer": {"provider": ["aws", "gcp"]}, "MaxNumber": 30},
        {"Name": "fine", "Consumer": {"templateName": ["std8"], "provider": ["gcp"]}, "MaxNumber": 3},
        {"Name": "slow", "Consumer": {"templateName": ["std8"]}, "StepValue": "2:60"},
    )  # fmt: skip

    assert made == [
        Budget(name="whole", max_hosts=100, max_asked=AskRate(hosts=5, within=MINUTE * 10)),
        Budget(name="one", provider="aws", max_hosts=20),
        Budget(name="both", providers=("aws", "gcp"), max_hosts=30),
        Budget(name="fine", provider="gcp", templates=("std8",), max_hosts=3),
        Budget(name="slow", templates=("std8",), max_asked=AskRate(hosts=2, within=MINUTE * 60)),
    ]
    assert warnings == ()


def test_a_policy_without_bounds_is_no_budget_and_one_of_the_same_name_gets_a_number(
    folder: Path,
) -> None:
    made, warnings = budgets(
        folder,
        {"Name": "free", "MaxNumber": -1},
        {"Name": "p", "MaxNumber": 1},
        {"Name": "p", "MaxNumber": 2},
    )

    assert [(one.name, one.max_hosts) for one in made] == [("p", 1), ("p 2", 2)]
    assert warnings == ()


@pytest.mark.parametrize(
    ("policy", "kept", "said"),
    [
        ({"UserDefinedScriptPath": "/site/decide.py"}, 0, "UserDefinedScriptPath /site/decide.py is not called"),
        ({"StepValue": "5:0"}, 0, "StepValue 5:0 has to be set by hand"),
        ({"StepValue": "5:1441"}, 0, "wanted 1 to 1440 minutes"),
        ({"StepValue": "5:1440"}, 1, None),
        ({"MaxNumber": 3, "Consumer": {"rcAccount": ["default"]}}, 1, "it counts them all"),
        ({"MaxNumber": 3, "Consumer": {"rcAccount": ["projectA"]}}, 0, "no host is asked under them"),
        ({"MaxNumber": 3, "Consumer": {"provider": ["asw"]}}, 1, "hostProviders.json has no provider asw"),
        ({"MaxNumber": 3, "Consumer": {"templateName": ["std9"]}}, 1, "no provider has a template std9"),
    ],
)  # fmt: skip
def test_what_we_cannot_say_of_a_policy_is_a_warning_that_names_it(
    folder: Path, policy: dict[str, object], kept: int, said: str | None
) -> None:
    made, warnings = budgets(folder, {"Name": "p", **policy})

    assert len(made) == kept
    assert len(warnings) == (said is not None)
    assert all(w.startswith("policy p: ") and said is not None and said in w for w in warnings)


def test_demand_thresholds_of_queues_are_pairs_of_jobs_and_minutes(folder: Path) -> None:
    (folder / "lsb.queues").write_text(
        "Begin Queue\nQUEUE_NAME = night # late\nRC_DEMAND_POLICY = THRESHOLD[[5, 10] [1,60] [100]]\nEnd Queue\n"
        "Begin Queue\nQUEUE_NAME = day\nEnd Queue\n"
    )

    made = import_lsf(folder, "site")

    assert "name: night" in made.queues
    assert "day" not in made.queues
    assert made.queues.count("- - ") == 3


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("hostProviders.json", '{"providers": [\n {"name": "a", "scriptpath": "x"}]}', ":2: providers[0].scriptpath: unknown key; did you mean scriptPath?"),
        ("hostProviders.json", '{"provider": []}', ":1: provider: unknown key; did you mean providers?"),
        ("hostProviders.json", '{"providers": [{"name": "a"}]}', "providers[0]: scriptPath is missing"),
        ("hostProviders.json", "{", "hostProviders.json:"),
        ("policy_config.json", '{"Policies": [\n\n {"MaxNumbr": 3}]}', ":3: Policies[0].MaxNumbr: unknown key; did you mean MaxNumber?"),
        ("policy_config.json", '{"Policies": [{"StepValue": "5"}]}', "'5': wanted N:M"),
        ("policy_config.json", '{"Policies": [{"Consumer": {"rcAcount": ["all"]}}]}', "did you mean rcAccount?"),
        ("aws/conf/awsprov_templates.json", '{"templates": [\n{"templateId": "t",\n "maxNumbr": 3}]}', ":3: templates[0].maxNumbr: unknown key; did you mean maxNumber?"),
        ("aws/conf/awsprov_templates.json", '{"templates": [{"templateId": "t", "attributes": {"mem": ["Number", "1"]}}]}', "wanted String, Numeric or Boolean"),
        ("lsb.queues", "Begin Queue\nRC_DEMAND_POLCY = THRESHOLD[[1]]\nEnd Queue", ":2: RC_DEMAND_POLCY: unknown key; did you mean RC_DEMAND_POLICY?"),
        ("lsb.queues", "Begin Queue\nRC_DEMAND_POLICY = [1, 2]\nEnd Queue", ":2: RC_DEMAND_POLICY: '[1, 2]': wanted THRESHOLD"),
    ],
)  # fmt: skip
def test_a_slip_is_named_with_its_file_line_and_the_right_word(
    folder: Path, file: str, text: str, message: str
) -> None:
    (folder / file).write_text(text)

    assert message in wrong(folder)


def test_slips_of_all_files_are_said_at_once(folder: Path) -> None:
    (folder / "policy_config.json").write_text('{"Policies": [{"Nam": "x"}]}')
    (folder / "lsb.queues").write_text("Begin Queue\nRC_DEMAND_POLICY = x\nEnd Queue")

    said = wrong(folder)

    assert "policy_config.json" in said
    assert "lsb.queues" in said


def test_what_is_not_found_is_a_warning(folder: Path) -> None:
    write(folder / "hostProviders.json", {"providers": [{"name": "x", "scriptPath": "nowhere"}]})

    made = import_lsf(folder, "site")

    assert len(made.warnings) == 2
    assert "folder: nowhere" in made.provisioner


def test_a_folder_of_something_else_is_an_error(tmp_path: Path) -> None:
    assert "hostProviders.json: there is no such file" in wrong(tmp_path)


@given(
    st.text(max_size=80)
    | st.text(alphabet='{}[]":, \n\tPNC', max_size=60)
    | st.recursive(
        st.none() | st.integers() | st.sampled_from(["all", "5:10", "providers", "Name"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["providers", "Policies", "templates", "Consumer", "name", "attributes", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    ).map(json.dumps)
)
def test_any_text_in_a_file_is_read_or_an_error_that_says_where(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.json"
        path.write_text(text, errors="replace")
        for read in (read_host_providers, read_policies, read_templates, read_queues):
            assert all(line.startswith(str(path)) for line in said_of(read, path))


def said_of(read: Callable[[Path], object], path: Path) -> list[str]:
    """Return the lines of the error of reading a file, none where it can be read."""
    try:
        read(path)
    except InputError as error:
        return error.lines()
    return []
