"""Where jobs come from: traces of real clusters, read and mapped to what the scheduler sees."""
