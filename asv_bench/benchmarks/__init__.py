"""The asv suite: made data, and counts beside the seconds."""
