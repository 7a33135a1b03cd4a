"""Moving from the LSF resource connector: its files become our configuration, and every slip is named with file and line."""

import json
from collections.abc import Callable
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
from xce.domain.formats.provisioner_config import ProvisionerConfig, problems

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


def test_policies_that_we_can_say_become_budgets_and_the_others_warnings(folder: Path) -> None:
    write(folder / "policy_config.json", {"Policies": [
        {"Name": "whole", "Consumer": {"rcAccount": ["all"], "templateName": ["all"], "provider": ["all"]}, "MaxNumber": "100", "StepValue": "5:10"},
        {"Name": "one", "Consumer": {"provider": ["aws"]}, "MaxNumber": 20},
        {"Name": "fine", "Consumer": {"templateName": ["std8"]}, "MaxNumber": 3},
    ]})  # fmt: skip

    made = import_lsf(folder, "site")

    config = read_model(made.provisioner.encode(), "made", ProvisionerConfig, problems)
    assert [(one.name, one.provider, one.max_hosts) for one in config.policy.budgets] == [
        ("whole", None, 100),
        ("one", "aws", 20),
    ]
    assert len(made.warnings) == 2
    assert "StepValue (at most 5 hosts per 10 min)" in made.warnings[0]
    assert "MaxNumber 3 for std8" in made.warnings[1]


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
