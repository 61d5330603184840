"""The tables of the paper, trained anew."""
