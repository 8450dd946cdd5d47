"""descend studio: runs, training, use, theory and labs in the browser, on this machine alone."""

from __future__ import annotations

from pathlib import Path

from descend.errors import Mistake

MISSING = 'the studio needs FastAPI and uvicorn: pip install "descend[serve]"'
SHORT = 16  # characters of a token


def studio(
    folder: str | Path = "runs", port: int = 8080, width: int = 1, browser: bool = False, token: str = ""
) -> None:
    """Open the studio in a folder of runs, until a signal ends it. Runs that it started go on.

    Args:
        folder: where the runs are; it is made if it is not there.
        port: where to listen on 127.0.0.1; 0: any port that is free.
        width: runs that train at once; others wait in the queue.
        browser: open a browser.
        token: what stands in the address instead of a new secret, of 16 characters or more.
    """
    try:
        from descend.workbench.life import run_studio
    except ModuleNotFoundError as error:
        if error.name in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise Mistake(MISSING) from None
        raise
    if width < 1:
        raise Mistake(f"--width {width}: at least 1")
    if token and (len(token) < SHORT or not token.isascii() or not token.isprintable()):
        raise Mistake(f"--token: {SHORT} characters or more, plain letters, digits and signs")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise Mistake(f"{folder} is a file; give the folder that holds the runs")
    run_studio(path, Path.cwd(), port, token, width, browser)


def command(
    folder: Path = Path("runs"),
    /,
    *,
    port: int = 8080,
    width: int = 1,
    browser: bool = False,
    token: str = "",
) -> None:
    """Runs, training, use, theory and labs in the browser, on this machine alone.

    The address that is printed holds a secret token. Runs go on when the studio or the browser ends.

    Args:
        folder: where the runs are; it is made if it is not there.
        port: where to listen on 127.0.0.1; 0: any port that is free.
        width: runs that train at once; others wait in the queue.
        browser: open a browser.
        token: what stands in the address instead of a new secret, of 16 characters or more.

    Examples:
        descend studio
        descend studio experiments/ --port 0 --browser
    """
    studio(folder, port, width, browser, token)
