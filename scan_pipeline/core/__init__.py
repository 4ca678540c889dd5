"""Vocabulary and judgement: pure, without files, network, clock or Dagster."""
