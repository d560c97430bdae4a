"""Recorded requests, for the inspector and for export: both wires, what the gateway did, and why. docs/flows.md describes the record."""
