"""Does a set of tasks pass: objectives met, nothing forbidden, nothing worse than before."""
