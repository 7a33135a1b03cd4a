"""The program ``xce``: what little can be said before anything is imported, so that a key press at the start is no traceback."""

import sys


def main() -> None:
    """Import the command line, and run it."""
    try:
        from xce.adapters.cli.main import main as run
    except KeyboardInterrupt:
        print("xce: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
