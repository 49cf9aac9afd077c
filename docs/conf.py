"""The configuration of the documentation site: the pages of the repository, searchable, with the library's reference.

    make docs-site

The sources are the Markdown pages of the repository, from its root, so links between them and to other files work both
in the repository and on the site. `site_pages` converts what Sphinx cannot read.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

_project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = _project["name"]
author = _project["authors"][0]["name"]
release = _project["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "site_pages"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**.md", "examples/**.md", "examples/*.ipynb"]
exclude_patterns = [".*", "build", "dist", "tests", "benchmarks/data", "**/node_modules"]

# headings get the same anchors as on GitHub, so that Sphinx can check links to them
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]
# no warning about code that cannot be highlighted, such as code in an unknown language
suppress_warnings = ["misc.highlighting_failure"]

# a word between single backticks in a docstring is a public name, or stays as it is
default_role = "py:obj"
add_module_names = False
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
