import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parent.parent / "scripts" / "demo"


def test_the_demo_does_what_it_says() -> None:
    answer = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, check=False)

    assert 0 == answer.returncode, answer.stdout + answer.stderr
    assert answer.stdout.endswith("Done: nothing was lost, nothing was doubled.\n")
    assert "NOT SO" not in answer.stdout
