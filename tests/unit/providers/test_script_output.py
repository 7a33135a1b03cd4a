"""The chain that reads what scripts print (F19): strict, outermost object, Python literal, repair; never a guess, never a crash."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.adapters.providers.reading import short
from xce.domain.formats.script_output import (
    DEPTH_MAX,
    VALUES_MAX,
    Message,
    Read,
    Step,
    Trouble,
    Unreadable,
    depth_of,
    read_output,
    without_codes,
)

keys = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
messages = st.dictionaries(keys, values, max_size=4)


def read(text: str | bytes) -> Read:
    found = read_output(text.encode() if isinstance(text, str) else text)
    assert isinstance(found, Read), found
    return found


def trouble(text: str | bytes) -> Trouble:
    found = read_output(text.encode() if isinstance(text, str) else text)
    assert isinstance(found, Unreadable), found
    return found.trouble


@given(messages)
def test_clean_json_is_read_as_it_is(message: Message) -> None:
    assert read(json.dumps(message)) == Read(message, Step.STRICT)


@given(messages)
def test_a_python_literal_is_read_as_the_json_it_means(message: Message) -> None:
    found = read(repr(message))

    assert found.message == message


@given(messages, st.text(alphabet="abc \n\t'!:,[]()", max_size=40))
def test_text_without_braces_around_the_object_is_noise(message: Message, noise: str) -> None:
    found = read(f"x{noise}\n{json.dumps(message)}\n{noise}")

    assert found.message == message
    assert found.step is Step.OUTERMOST


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_not_and_nothing_else(raw: bytes) -> None:
    assert isinstance(read_output(raw), Read | Unreadable)


@given(st.text(alphabet="{}[]'\"\\,: \n1aTN", max_size=120))
def test_any_mixture_of_what_the_chain_looks_at_is_read_or_not(text: str) -> None:
    found = read_output(text.encode())

    if isinstance(found, Read):
        json.dumps(found.message).encode()


@given(messages, st.integers(0, 400))
def test_a_cut_answer_is_never_another_answer(message: Message, length: int) -> None:
    text = json.dumps({"requestId": "add-1", "more": message})
    found = read_output(text[: min(length, len(text) - 1)].encode())

    assert isinstance(found, Unreadable) or "requestId" not in found.message


def test_a_warning_before_the_answer_is_kept_for_the_log() -> None:
    found = read('warning: the setting can\'t be used {here}\n\n{"requestId": "add-1"}\n')

    assert found.message == {"requestId": "add-1"}
    assert found.noise == "warning: the setting can't be used {here}"


def test_a_brace_that_is_never_closed_hides_nothing() -> None:
    assert read('ignored { setting\n{"requestId": "add-1"}').message == {"requestId": "add-1"}


def test_two_objects_with_different_ids_are_no_answer() -> None:
    assert trouble('{"requestId": "a"}\n{"requestId": "b"}') is Trouble.SEVERAL
    assert trouble('[{"requestId": "a"}, {"requestId": "b"}]') is Trouble.SEVERAL


def test_one_object_with_two_ids_is_no_answer() -> None:
    assert isinstance(read_output(b'{"requestId": "a", "requestId": "b"}'), Unreadable)


def test_the_same_answer_twice_is_one() -> None:
    assert read('{"requestId": "a"}\n{"requestId": "a"}').message == {"requestId": "a"}


def test_log_lines_in_json_are_not_the_answer() -> None:
    found = read('{"level": "warn", "text": "slow"}\n{"requestId": "a", "message": ""}')

    assert found.message == {"requestId": "a", "message": ""}


@pytest.mark.parametrize("text", ["", "  \n", "none", "[]", "null", "3", '"text"', "<html></html>"])
def test_text_without_an_object_is_no_answer(text: str) -> None:
    assert trouble(text) is Trouble.NOTHING


@pytest.mark.parametrize(
    ("text", "message", "step"),
    [
        ("{'requestId': 'a', 'ok': True, 'x': None}", {"requestId": "a", "ok": True, "x": None}, Step.LITERAL),
        ("{'text': 'it\\'s', 'pair': (1, 2)}", {"text": "it's", "pair": [1, 2]}, Step.LITERAL),
        ('{"requests": [{"requestId": "a",},],}', {"requests": [{"requestId": "a"}]}, Step.REPAIRED),
        ('{"price": NaN, "requestId": "a"}', {"price": None, "requestId": "a"}, Step.REPAIRED),
        ('\ufeff{"requestId": "a"}', {"requestId": "a"}, Step.STRICT),
        ('{\r\n "requestId": "a"\r\n}\r\n', {"requestId": "a"}, Step.STRICT),
        ('\x1b[33mwarning\x1b[0m\n{"requestId": "a"}', {"requestId": "a"}, Step.OUTERMOST),
        ('{"message": "two\nlines", "requestId": "a"}', {"message": "two\nlines", "requestId": "a"}, Step.OUTERMOST),
    ],
)  # fmt: skip
def test_what_scripts_print_is_read_with_the_step_it_took(
    text: str, message: Message, step: Step
) -> None:
    found = read(text)

    assert (found.message, found.step) == (message, step)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert read(b'{"message": "\xff", "requestId": "a"}').message["requestId"] == "a"


def test_half_a_surrogate_pair_can_be_written_again() -> None:
    found = read('{"message": "\\ud800", "pair": "\\ud83d\\ude00", "path": "C:\\\\ud800"}')

    assert found.message == {"message": "\ufffd", "pair": "\U0001f600", "path": "C:\\ud800"}


def test_huge_numbers_stay_texts() -> None:
    digits = "9" * 100_000

    found = read(f'{{"n": {digits}, "f": 1e999}}')

    assert found.message == {"n": digits, "f": "1e999"}


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 100_000])
def test_deep_nesting_is_no_answer_and_no_crash(depth: int) -> None:
    assert trouble('{"a":' * depth + "1" + "}" * depth) is Trouble.TOO_DEEP
    assert isinstance(read_output(("{'a':" * depth + "1" + "}" * depth).encode()), Unreadable)
    assert isinstance(read_output(b"[" * depth), Unreadable)
    assert isinstance(read_output(b"{" * depth), Unreadable)


def test_more_values_than_any_message_has_are_not_read() -> None:
    assert trouble("[" + "0," * VALUES_MAX + "0]") is Trouble.TOO_LARGE


@pytest.mark.parametrize(
    "text",
    [
        '{"' + '\\"' * 1_000_000,
        "{'" + "\\'" * 1_000_000,
        "{" * 900_000,
        "{'a': " * 300_000,
        "{" + "'a " * 700_000,
        "\x1b[" + "0;" * 900_000,
        "{" + "\x9b" * 900_000,
        '{"a": "' + "\\ud800" * 300_000 + '"}',
    ],
    ids=range(8),
)
def test_megabytes_that_were_made_to_be_slow_are_not(text: str) -> None:
    assert isinstance(read_output(text.encode()), Read | Unreadable)


def test_five_thousand_machines_are_read() -> None:
    machines = [{"machineId": f"vm-{n}", "result": "succeed", "x": "y" * 500} for n in range(5000)]
    text = json.dumps({"requests": {"requestId": "a", "machines": machines}})

    assert len(text) > 2_500_000
    assert read(text).step is Step.STRICT


def test_terminal_codes_are_taken_out() -> None:
    assert without_codes("a\x1b[31mb\x1b]0;title\x07c\x9b1md\u202e\x00\te\n") == "abcd\te\n"


@given(values)
def test_depth_counts_the_levels(value: object) -> None:
    inner: list[object] = [value]

    assert depth_of(inner) == depth_of(value) + 1  # type: ignore[arg-type]


def test_a_long_text_of_a_provider_keeps_its_end() -> None:
    assert short("as it is") == "as it is"
    for lines in (50, 500):
        said = short(
            "Traceback:\n" + "  in a file\n" * lines + "KeyError: 'zone'",
        )

        assert said.startswith("Traceback: in a file")
        assert said.endswith(" in a file KeyError: 'zone'")
        assert " ... " in said
        assert len(said) <= 500
