"""Writes the files of the Helm chart from the manifests of `gpushare k8s print-manifest`.

python tools/make_helm_chart.py            # deploy/helm/gpushare
python tools/make_helm_chart.py --check    # exit 1 if the files are not what that makes
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpushare.cli.k8s.manifest import chart_files

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "helm" / "gpushare"
_HEAD = "# Made by tools/make_helm_chart.py.\n"


def main() -> None:
    """Writes or checks."""
    is_check = sys.argv[1:] == ["--check"]
    for name, text in chart_files().items():
        path = FOLDER / name
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_HEAD + text)
        elif not path.exists() or path.read_text() != _HEAD + text:
            sys.exit(f"{name} is not what the manifests say: python tools/make_helm_chart.py")


if __name__ == "__main__":
    main()
