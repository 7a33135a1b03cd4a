"""The cluster as the scheduler sees it: snapshot, requirement language, limits."""
