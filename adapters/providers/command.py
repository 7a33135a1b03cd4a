"""The provider ``command``: any commands that print JSON, as scripts of the contract. Standard library only.

``xce provider install command DIR`` writes scripts that run this file. ``command.json`` in ``$PRO_CONF_DIR/conf`` or ``$PRO_CONF_DIR``
says what each script runs, and where its answer has what the contract wants:

    {"requestMachines": {"run": ["mycloud", "create", "--type", "{template.templateId}", "--count", "{template.machineCount}"],
                         "answer": {"requestId": "job.id"}},
     "getRequestStatus": {"run": ["mycloud", "show", "{requests.0.requestId}"], "each": "requests", ...}}

In ``run``, a word in braces is a path into the input, ``{machines.*.machineId}`` is one argument for each, and ``{input}`` is the
input file. In ``answer``, each value is a path into what the command printed: a dotted one, or ``"=text"`` for the text itself. With
``list`` (a path) the answer is made of each element of that list, under the name ``as``. Without ``answer`` the output is passed on.
``each`` runs the command once for each element of that list of the input, which then has only that one, and joins the answers.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

_WORD: Final = re.compile(r"\{([A-Za-z0-9_.*]+)\}")


class CommandError(Exception):
    """The command failed; the message is what it said."""


def main(arguments: list[str]) -> int:
    """Run one script."""
    if len(arguments) != 3 or arguments[1] != "-f":
        print("wanted: SCRIPT -f FILE", file=sys.stderr)
        return 2
    script, _, file = arguments
    rule = _configuration(Path(os.environ["PRO_CONF_DIR"])).get(script)
    if rule is None:
        print(json.dumps({"message": f"command.json says nothing of {script}"}))
        return 1
    try:
        given = json.loads(Path(file).read_text(encoding="utf-8"))
        print(json.dumps(answer_of(rule, given, file)))
    except CommandError as error:
        print(json.dumps({"message": str(error)}))
        return 1
    except (OSError, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        print(json.dumps({"message": f"{script}: {error!r}"}))
        return 1
    return 0


def answer_of(rule: dict[str, Any], given: dict[str, Any], file: str) -> Any:
    """Return the answer of a script to an input."""
    each = rule.get("each")
    if each is None:
        return _shaped(rule, _ran(arguments_of(rule["run"], given, file)), given)
    parts: list[Any] = []
    for one in given[each]:
        alone = {**given, each: [one]}
        answer = _shaped(rule, _ran(arguments_of(rule["run"], alone, file)), alone)
        found = answer.get(each, answer)
        parts += found if isinstance(found, list) else [found]
    return {each: parts}


def arguments_of(run: list[str], given: dict[str, Any], file: str) -> list[str]:
    """Return the arguments of a command, with the words in braces replaced."""
    return [made for word in run for made in _filled(word, given, file)]


def _filled(word: str, given: dict[str, Any], file: str) -> Iterator[str]:
    whole = _WORD.fullmatch(word)
    if whole is not None and "*" in whole[1]:
        yield from map(_text, _values(given, whole[1]))
        return

    def value(match: re.Match[str]) -> str:
        if match[1] == "input":
            return file
        return ",".join(map(_text, _values(given, match[1])))

    yield _WORD.sub(value, word)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(value: Any, path: str) -> list[Any]:
    """Return what is at a path: one value, or with ``*`` any number; a key that is not there is an empty text."""
    found = [value]
    for step in path.split("."):
        found = [inner for one in found for inner in _step(one, step)]
    return found


def _step(value: Any, step: str) -> list[Any]:
    if step == "*":
        return list(cast("list[Any]", value))
    if isinstance(value, list):
        return [value[int(step)]]
    return [value.get(step, "")]


def _shaped(rule: dict[str, Any], printed: Any, given: dict[str, Any]) -> Any:
    shape = rule.get("answer")
    if shape is None:
        return printed
    if "list" not in rule:
        return _one(shape, printed, given)
    elements = _values(printed, rule["list"])[0] if rule["list"] else printed
    made = [_one(shape, element, given) for element in elements]
    name = rule["as"]
    if name == "machines" and "requests" in given:
        request = given["requests"][0]["requestId"]
        status = "running" if any(one.get("result") == "executing" for one in made) else "complete"
        return {
            "requests": [{"requestId": request, "status": status, "message": "", "machines": made}]
        }
    return {name: made}


def _one(shape: Any, printed: Any, given: dict[str, Any]) -> Any:
    if isinstance(shape, dict):
        parts = cast("dict[str, Any]", shape)
        return {key: _one(inner, printed, given) for key, inner in parts.items()}
    if isinstance(shape, str) and shape.startswith("="):
        return shape[1:]
    if isinstance(shape, str) and shape.startswith("input."):
        return _values(given, shape.removeprefix("input."))[0]
    return _values(printed, shape)[0] if isinstance(shape, str) else shape


def _ran(arguments: list[str]) -> Any:
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    sys.stderr.buffer.write(done.stderr)
    if done.returncode != 0:
        said = (done.stdout.strip() or done.stderr.strip()).decode(errors="replace")
        raise CommandError(said or f"{arguments[0]} ended with {done.returncode}")
    return json.loads(done.stdout or b"{}")


def _configuration(folder: Path) -> dict[str, Any]:
    for path in (folder / "conf" / "command.json", folder / "command.json"):
        if path.is_file():
            return cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
    raise SystemExit(f"there is no command.json in {folder}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
