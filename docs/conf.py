"""Settings of the documentation site: `make docs`.

The pages are Markdown that also reads well without the site. Two pages come from the program
itself when the site is built: the command line (typer) and the Python interface (docstrings).
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python"))
os.environ["GPUSHARE_DISABLE"] = "1"  # docstrings are read; no allocator is installed for that

import typer  # noqa: E402
from typer.cli import get_docs_for_click  # noqa: E402

from gpushare.cli.app import make_app  # noqa: E402
from gpushare.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# reference/command_line.md includes this file, which has every command and every option.
GENERATED = HERE.parent / "build" / "docs" / "command_line.md"
GENERATED.parent.mkdir(parents=True, exist_ok=True)
command = typer.main.get_command(make_app())
GENERATED.write_text(
    get_docs_for_click(obj=command, ctx=typer.Context(command), name="gpushare", indent=1)
)

project = "gpushare"
author = "The gpushare authors"
version = release = __version__
root_doc = "index"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4  # the same anchors as on the hosts of repositories
autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"gpushare {__version__}"
html_static_path = ["static"]
html_css_files = ["messages.css"]
html_copy_source = False
html_show_copyright = False


def _unlink(_app: object, _page: str, source: list[str]) -> None:
    """Makes text of links to documents beside docs/, which the page that has the link includes."""
    source[0] = re.sub(r"\[([A-Z]+\.md)\]\((?:\.\./)+\1\)", r"`\1`", source[0])


def _list_the_rest(_app: object, page: str, source: list[str]) -> None:
    """Puts pages that the index does not list at its end, so that a new page is on the site."""
    listed = source[0].splitlines()
    rest = sorted({path.stem for path in HERE.glob("*.md")} - {*listed, root_doc})
    if page == root_doc and rest:
        lines = ["```{toctree}", ":hidden:", ":caption: More", "", *rest, "```"]
        source[0] += "\n" + "\n".join(lines) + "\n"


def setup(app: Sphinx) -> None:
    """Is called by Sphinx."""
    app.connect("source-read", _unlink)
    app.connect("source-read", _list_the_rest)
