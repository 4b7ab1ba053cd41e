"""The distributed program of the benchmarks, as `gpushare run` starts it, in a forked process."""

from __future__ import annotations

from benchmarks.ranks_program import main
from gpushare import auto
from tests.support.net_hosts import enter_namespace

if __name__ == "__main__":
    enter_namespace()
    auto.enable()
    main()
