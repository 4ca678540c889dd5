"""What is held against the staged records: expectations, evidence, partitions, a second walk."""
