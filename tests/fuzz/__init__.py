"""A campaign of random tests: each case is made from its seed alone, and checks properties that always hold.

Run by `ci/fuzz`; `python -m fuzz --help` with tests/ on the path. One module for each campaign.
"""

from fuzz import (
    arrays,
    checkpoints,
    commands,
    disk,
    files,
    others,
    penalties,
    problems,
    signals,
    species,
    texts,
    threads,
)

MODULES = (problems, penalties, others, files, checkpoints, arrays, texts, species, commands, threads, signals, disk)
CAMPAIGNS = {module.__name__.rpartition(".")[2]: module.CAMPAIGN for module in MODULES}
