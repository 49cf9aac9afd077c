"""Run the cells of the example notebooks in one process, without Jupyter, and write their outputs again.

The outputs are like Jupyter's: the printed text, then the last expression as text and, if the value has
`_repr_html_`, as HTML. A failing cell fails the run.
"""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any


def refresh_notebook(path: Path) -> str:
    """Return a notebook's text with the current outputs of its cells."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        cell["execution_count"] = count
        cell["outputs"] = _run_cell("".join(cell["source"]), f"{path.name}, cell {count}", names, count)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _run_cell(source: str, location: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    body = ast.parse(source, location)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, location, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), location, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": value._repr_html_().splitlines(keepends=True)} | data
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs
