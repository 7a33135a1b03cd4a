"""An EC2 stand-in: moto's server in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread

#: An image that the stand-in has from the start.
IMAGE = "ami-12c6146b"
REGION = "us-east-1"
#: What stands for an account's credentials: they look like ones, and must never be seen anywhere.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAQ3EGVBD5EXAMPLE7",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI7MDENGbPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjEXAMPLETOKEN",
}
_PORT = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")
_INSTANCE = re.compile(
    r"<instanceId>(?P<id>i-[0-9a-f]+)</instanceId>.*?<instanceState>.*?<name>(?P<state>[a-z-]+)</name>",
    re.DOTALL,
)


class Moto:
    """A running stand-in."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """Forget everything."""
        self._call("POST", "/moto-api/reset", "")

    def states(self) -> dict[str, str]:
        """Return the state of each instance by id, whoever made it: asked for past our own code."""
        answer = self.act("DescribeInstances")
        return {match["id"]: match["state"] for match in _INSTANCE.finditer(answer)}

    def alive(self) -> set[str]:
        """Return the ids of the instances that cost money."""
        return {one for one, state in self.states().items() if state in ("pending", "running")}

    def act(self, action: str, **parameters: str) -> str:
        """Do something behind the provider's back; return the answer."""
        words = [f"Action={action}", "Version=2016-11-15"]
        words += [f"{name}={value}" for name, value in parameters.items()]
        return self._call("POST", "/", "&".join(words))

    def first(self, action: str, element: str) -> str:
        """Return the text of the first element of a name in the answer to an action."""
        match = re.search(f"<{element}>(.*?)</{element}>", self.act(action))
        assert match is not None, f"no {element}"
        return match[1]

    def _call(self, method: str, path: str, body: str) -> str:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        scope = f"Credential=x/20260101/{REGION}/ec2/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        try:
            connection.request(method, path, body, headers)
            return connection.getresponse().read().decode()
        finally:
            connection.close()


@contextmanager
def running() -> Generator[Moto, None, None]:
    """Run a stand-in on a free port."""
    with subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said: list[str] = []
        try:
            port = None
            for line in process.stderr:
                said.append(line)
                if match := _PORT.search(line):
                    port = int(match[1])
                    break
            assert port is not None, "".join(said)
            # It writes a line for each request: read, so that it never waits for a reader.
            rest = Thread(target=process.stderr.read)
            rest.start()
            yield Moto(port)
        finally:
            process.terminate()
            process.wait(60)
        rest.join()
