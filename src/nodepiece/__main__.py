"""The entry point of the command line: python -m nodepiece, and the script nodepiece."""

import sys

from nodepiece.errors import STOPPED


def main() -> None:
    """Run the command line; Ctrl-C is reported in one sentence even while it is being imported."""
    try:
        from nodepiece.cli import main as run_command

        run_command()
    except KeyboardInterrupt:
        status, sentence = STOPPED
        sys.stderr.write(f"{sentence}\n")
        sys.exit(status)


if __name__ == "__main__":
    main()
