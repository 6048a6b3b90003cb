"""Tags the models of a trial's candidate: may they be released?"""
