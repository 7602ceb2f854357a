"""Snapshots of a run: how they are written, and how a run resumes from one."""
