"""What bench/repairs has already: calls with their schemas, strings that are hard to write, and JSON that is almost JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # mypy knows what is in bench/ by its own name, because bench/run imports it so
    from repairs.measure import same
    from repairs.samples import Sample, bundled, livened, with_json_types
    from repairs.writing import WRITINGS
else:
    from bench.repairs.measure import same
    from bench.repairs.samples import Sample, bundled, livened, with_json_types
    from bench.repairs.writing import WRITINGS

__all__ = ["WRITINGS", "Sample", "bundled", "livened", "same", "with_json_types"]
