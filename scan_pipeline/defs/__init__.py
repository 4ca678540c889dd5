"""The scans and analyses that ship, a folder each."""
