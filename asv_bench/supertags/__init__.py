"""The five models at the size of the paper's SuperTags, and in parts of it: time, memory, weights, error."""
