"""The command ``gpuboost`` from its first statement on: an interrupt ends it in one line, also while it imports.

A module beside the package, since a module inside would import the package before its own first statement.
"""

import sys


def main() -> int:
    """Run the command line and return its exit status (``gpuboost.cli`` lists them)."""
    try:
        from gpuboost.cli import main

        return main()
    except KeyboardInterrupt:
        print("\ngpuboost: interrupted", file=sys.stderr)
        return 130
