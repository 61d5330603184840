"""`python -m fuzz [MINUTES]`: run the campaigns; exit status 1 on a finding."""

import argparse
import secrets
import sys

from fuzz import CAMPAIGNS
from fuzz.runner import Runner, format_table
from fuzz.worker import run_case


def main():
    parser = argparse.ArgumentParser(prog="ci/fuzz", description="Random tests, for some minutes or some cases.")
    parser.add_argument("minutes", type=float, nargs="?", default=3.0, help="in all (3)")
    parser.add_argument("--only", action="append", choices=CAMPAIGNS, metavar="CAMPAIGN", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, help="of the first case (another one each time)")
    parser.add_argument("--cases", type=int, help="of each campaign, whatever time they take")
    parser.add_argument("--jobs", type=int, help="campaigns side by side (as many as there are processors)")
    parser.add_argument("--case", nargs=2, metavar=("CAMPAIGN", "SEED"), help="run one case again")
    args = parser.parse_args()
    if args.case:
        print(run_case(args.case[0], int(args.case[1])))
        return 0
    seed = secrets.randbelow(10**9) if args.seed is None else args.seed
    print(f"first seed {seed}", flush=True)
    chosen = {name: campaign for name, campaign in CAMPAIGNS.items() if args.only is None or name in args.only}
    tallies = Runner(seed).run(chosen, 60 * args.minutes, args.cases, args.jobs)
    print("\n" + format_table(tallies, seed))
    return int(any(tally.findings for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
