"""RecordRun of the TRAIN machine."""
