"""python -m proofs.package: build the wheel and the sdist, install each alone in a clean environment, and try them.

    the wheel     with a compiler as it is
    the sdist     without one (CXX names none): slower, and the same numbers

A short run has to end with the same losses in both; `explain` and `find` have to know the catalogue, and the
studio its pages. Needs the network or a package index; `constraints.txt` pins what is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
STUDIO = (
    "from descend.workbench.frame import read_static; assert read_static('studio.js') and read_static('studio.css')"
)


def call(*words: object, environment: dict[str, str] | None = None, where: Path | None = None) -> str:
    """What a command prints; its failure ends everything."""
    line = [str(word) for word in words]
    done = subprocess.run(line, env=environment, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    maker = make_environment(folder / "maker")
    call(maker, *PIP, "build")
    call(maker, "-m", "build", "--outdir", folder / "dist", HERE)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def make_environment(folder: Path) -> Path:
    """A clean environment's Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def try_out(archive: Path, folder: Path, compiler: bool) -> list[float]:
    """Install an archive alone, use it as a newcomer would, and return the losses of a short run."""
    python = make_environment(folder / "environment")
    call(python, *PIP, "--constraint", HERE / "constraints.txt", f"{archive}[serve]")
    environment = {**os.environ, "TORCH_EXTENSIONS_DIR": str(folder / "compiled"), "OMP_NUM_THREADS": "1"}
    environment |= {} if compiler else {"CXX": "no-such-compiler", "PATH": f"{python.parent}"}
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    use = lambda *words: call(python, "-m", "descend", *words, environment=environment, where=folder)
    assert use("--version").startswith("descend ")
    assert "grouped-query-attention" in use("find", "grouped query")
    assert "agrees" in use("explain", "softmax")
    call(python, "-c", STUDIO, environment=environment, where=folder)
    use("train", "gpt2-chars", "--steps", "6", "--eval-every", "6", "--out", "run", "--quiet")
    assert use("generate", "run", "The ", "--tokens", "8", "--seed", "0")
    use("export", "run", "--to", "safetensors", "--out", "exported")
    assert (folder / "exported" / "README.md").exists(), "an exported folder has a model card"
    lines = map(json.loads, (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        print(f"built {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) and {sdist.name}", flush=True)
        losses = {}
        for title, archive, compiler in (("wheel", wheel, True), ("sdist, no compiler", sdist, False)):
            place = folder / title.partition(",")[0]
            place.mkdir()
            losses[title] = try_out(archive, place, compiler)
            print(f"{title}: installed, trained, generated, exported; last loss {losses[title][-1]:.4f}", flush=True)
        first, second = losses.values()
        same = first == second
        near = max(abs(a - b) for a, b in zip(first, second, strict=True))
        print("the same losses, to the bit" if same else f"losses differ by at most {near:.2g}")
    return 0 if near < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
