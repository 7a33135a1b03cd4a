"""The request strings of PBS logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.replay.workloads.node_request import (
    Chunk,
    NodeRequest,
    NodeRequestError,
    parse_node_request,
)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("1:ppn=12", (Chunk(processors=12),)),
        ("8:ppn=8:x86_64:cl_zegox", (Chunk(nodes=8, processors=8, properties=("x86_64", "cl_zegox")),)),
        ("1:ppn=1+2:ppn=2", (Chunk(), Chunk(nodes=2, processors=2))),
        ("1:ppn=4:^cl_zewura", (Chunk(processors=4, without=("cl_zewura",)),)),
        ("1:ppn=4:^zewura12.cerit-sc.cz", (Chunk(processors=4, not_hosts=("zewura12",)),)),
        ("1:ppn=1:zegox20.cerit-sc.cz", (Chunk(hosts=("zegox20",)),)),
        ("zewura19.cerit-sc.cz:ppn=8", (Chunk(processors=8, hosts=("zewura19",)),)),
        ("1:ppn=2:host=zewura10", (Chunk(processors=2, hosts=("zewura10",)),)),
        ("1:ppn=1:mem=3gb", (Chunk(memory=3072),)),
        ("1:ppn=1:mem=1048577", (Chunk(memory=2),)),
        ("1:ppn=1.5:brno", (Chunk(processors=1, fraction=True, properties=("brno",)),)),
        ("1:ppn=0.5", (Chunk(processors=1, fraction=True),)),
        ("1:ppn=1:scratch=40gb", (Chunk(unknown=("scratch=40gb",)),)),
        ("4", (Chunk(nodes=4),)),
    ],
)  # fmt: skip
def test_a_request_says_what_each_of_its_nodes_must_have(
    text: str, chunks: tuple[Chunk, ...]
) -> None:
    assert parse_node_request(text) == NodeRequest(chunks)


def test_excl_makes_the_nodes_exclusive_and_other_flags_are_kept_as_unknown() -> None:
    assert parse_node_request("1:ppn=64#excl").exclusive
    assert parse_node_request("1:ppn=64#shared").unknown == ("#shared",)
    assert parse_node_request("2:ppn=3#excl#shared") == NodeRequest(
        (Chunk(nodes=2, processors=3),), exclusive=True, unknown=("#shared",)
    )


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("1:", 2),
        ("1::x", 2),
        ("1:ppn=", 6),
        ("1:ppn=x", 6),
        ("1:ppn=0", 6),
        ("1:ppn=-1", 6),
        ("1:ppn=9999999", 6),
        ("0:ppn=1", 0),
        ("9999999:ppn=1", 0),
        ("1:mem=3xb", 6),
        ("1:ppn=1+", 8),
        ("1:^", 2),
        ("1:a b", 2),
        ("1:ppn=1#", 8),
        ("1#ex cl", 2),
    ],
)
def test_a_wrong_request_says_where(text: str, offset: int) -> None:
    with pytest.raises(NodeRequestError) as caught:
        parse_node_request(text)

    assert caught.value.offset == offset


@given(
    nodes=st.integers(1, 1000),
    processors=st.integers(1, 1000),
    properties=st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), max_size=4),
    without=st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), max_size=3),
    exclusive=st.booleans(),
)
def test_a_request_that_was_written_is_read_back(
    nodes: int, processors: int, properties: list[str], without: list[str], exclusive: bool
) -> None:
    words = [str(nodes), f"ppn={processors}", *properties, *("^" + name for name in without)]
    text = ":".join(words) + ("#excl" if exclusive else "")

    assert parse_node_request(text) == NodeRequest(
        (Chunk(nodes, processors, properties=tuple(properties), without=tuple(without)),), exclusive
    )


def offset_of_error(text: str) -> int:
    """Return where the text is wrong, 0 where it is not."""
    try:
        parse_node_request(text)
    except NodeRequestError as error:
        return error.offset
    return 0


@given(st.text(alphabet="0123456789:=+#^.ppnmexcl gbzewura_-", max_size=40))
def test_any_text_is_a_request_or_a_request_error(text: str) -> None:
    assert 0 <= offset_of_error(text) <= len(text)
