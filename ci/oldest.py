"""Print the oldest dependencies that pyproject.toml allows, as pip's constraints: `numpy>=1.26` as `numpy~=1.26.0`."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in project["dependencies"] + extras["sklearn"] + extras["plot"]:
    name, oldest = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
    print(f"{name}~={oldest}.0")
