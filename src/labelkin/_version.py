__version__ = "0.2.0"
RUN_LAYOUT = 2  # of a run's folder; raised when older ones can no longer be read
