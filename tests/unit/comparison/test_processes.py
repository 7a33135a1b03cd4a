"""Processes of a comparison, and a key press."""

import signal
import time
from multiprocessing import get_context
from pathlib import Path

from xce.adapters.deaf import start_deaf


def test_a_process_is_deaf_to_key_presses_before_it_has_imported_anything() -> None:
    process = get_context("spawn").Process(target=time.sleep, args=(600,), daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    start_deaf(process)

    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        (blocked,) = [int(line.split()[1], 16) for line in lines if line.startswith("SigBlk:")]
        assert blocked & 1 << (signal.SIGINT - 1)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    finally:
        process.terminate()
        process.join()
    assert process.exitcode == -signal.SIGTERM
