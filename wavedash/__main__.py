"""The program: what the `wavedash` script runs, and `python -m wavedash` where the script is not on the path."""
from wavedash.import_path import forget_first_folder


def main() -> None:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nobody wants to see which import was interrupted
    from wavedash.cli import main

    main()


if __name__ == "__main__":
    forget_first_folder()  # before anything else is imported
    main()
