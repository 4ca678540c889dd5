"""The OData service of the package odatapy, over the sample customers, on a real port."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from odatapy.data import Entity, ValueType
from odatapy.edm.csdl import (
    CsdlAbstractEdmProvider,
    CsdlEntityContainer,
    CsdlEntitySet,
    CsdlEntityType,
    CsdlProperty,
    CsdlPropertyRef,
    CsdlSchema,
)
from odatapy.server import OData
from odatapy.server.adapters import ODataASGIApp
from odatapy.server.inmemory import InMemoryDataStore, InMemoryProcessor

from scan_pipeline.simulator.population import population
from scan_pipeline.simulator.server import running_app

TYPES: Final = {
    "customer_id": "Edm.String",
    "region": "Edm.String",
    "status": "Edm.String",
    "schema_version": "Edm.Int32",
}


class _Model(CsdlAbstractEdmProvider):
    def get_schemas(self) -> list[CsdlSchema]:
        customer = CsdlEntityType(
            name="Customer",
            key=[CsdlPropertyRef(name="customer_id")],
            properties=[
                CsdlProperty(name=name, type=kind, nullable=name != "customer_id")
                for name, kind in TYPES.items()
            ],
        )
        container = CsdlEntityContainer(
            name="Container",
            entity_sets=[CsdlEntitySet(name="Customers", type="Registry.Customer")],
        )
        return [
            CsdlSchema(namespace="Registry", entity_types=[customer], entity_container=container)
        ]


def customers(size: int) -> list[dict[str, Any]]:
    """Return the first customers of the sample registry, with the fields the service has."""
    rows = (json.loads(row.raw) for row in population("customers", size))
    return [{name: row[name] for name in TYPES} for row in rows]


@contextmanager
def serving(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Serve customers for the length of a `with` block; yields the address of the entity set."""
    odata = OData.new_instance()
    handler = odata.create_handler(odata.create_service_metadata(_Model()))
    store = InMemoryDataStore()
    store.set_entities("Customers", [_entity(row) for row in rows])
    handler.register(InMemoryProcessor(store, page_size=1000))
    with running_app(ODataASGIApp(handler)) as base_url:
        yield f"{base_url}/Customers"


def _entity(row: Mapping[str, Any]) -> Entity:
    entity = Entity()
    for name, kind in TYPES.items():
        entity.set_property(name, row[name], ValueType.PRIMITIVE, kind)
    return entity
