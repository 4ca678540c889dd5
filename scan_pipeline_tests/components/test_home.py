"""Dagster's home: persistent, without telemetry, one run of a scan at a time."""

from pathlib import Path

import dagster as dg

from scan_pipeline.components.home import prepare_home


def test_fresh_home_has_its_settings(tmp_path: Path) -> None:
    """Dagster accepts them; runs queue by pools, and a process that died is tried once more."""
    prepare_home(tmp_path / "data" / "home")
    with dg.DagsterInstance.from_config(str(tmp_path / "data" / "home")) as instance:
        assert instance.get_settings("telemetry") == {"enabled": False}
        pools = instance.get_concurrency_config().pool_config
        assert pools.default_pool_limit == 1
        assert pools.pool_granularity is not None
        assert pools.pool_granularity.value == "run"
        assert instance.run_retries_enabled
        assert instance.run_retries_max_retries == 1
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert instance.run_monitoring_enabled
        assert instance.freshness_enabled


def test_settings_that_are_there_stay(tmp_path: Path) -> None:
    """The file is the user's from its first day on."""
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    settings = prepare_home(tmp_path)

    assert settings.read_text() == "telemetry: {enabled: true}\n"


def test_partitions_outlive_the_process(tmp_path: Path) -> None:
    """A second instance on the same home knows the generation."""
    prepare_home(tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        instance.add_dynamic_partitions("customers_generations", ["20261130T020000Z"])
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        known = instance.get_dynamic_partitions("customers_generations")

    assert known == ["20261130T020000Z"]
