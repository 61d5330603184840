"""A campaign whose cases end as the lowest digit of their seed says, for the tests of the runner."""

import os
import time

from fuzz.campaign import Campaign, check


def set_up(folder):
    def run(rng):
        seed = rng.bit_generator.seed_seq.entropy
        check(seed % 10 != 1, "a digit of 1")
        if seed % 10 == 2:
            os.abort()
        if seed % 10 == 3:
            time.sleep(60)
        return "fine"

    return run


CAMPAIGN = Campaign(set_up, time_limit=2.0)
