"""``crfit`` and ``python -m crfit``: the command line."""

# Not `signal`, which imports several modules: until `main` runs, Ctrl-C shows a traceback.
import _signal as signal  # type: ignore[import-not-found]
import sys


def main() -> int:
    """Run the command line; Ctrl-C while modules are imported ends the program without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler:  # ignored, or that of a program around this one
        from crfit.cli import main as run

        return run()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from crfit.cli import main as run

    try:
        signal.signal(signal.SIGINT, handler)
        return run()
    except KeyboardInterrupt:  # before or after the verb
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
