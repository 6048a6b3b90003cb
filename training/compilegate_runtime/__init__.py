"""What every training job carries along: it measures the job and applies its compiler.

Standard library only, importable on Python 3.8 and later; torch is imported where it is used.
"""
