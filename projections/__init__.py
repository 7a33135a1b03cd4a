"""Read models: folds over the events of the log, dropped and rebuilt at will."""
