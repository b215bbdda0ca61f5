"""What `incarnate doctor` found, added up and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incarnate.cli.errors import EXIT_DAMAGED, EXIT_ODD

if TYPE_CHECKING:
    from incarnate.domain.diagnosis import Diagnosis

__all__ = ["Sums", "fields_of"]


class Sums:
    """All diagnoses together."""

    def __init__(self) -> None:
        self.activations = self.events = self.bytes = self.superseded_events = self.superseded_bytes = 0
        self.counts = dict.fromkeys(("damage", "warning", "note"), 0)
        self.largest: tuple[int, str] | None = None

    def add(self, found: Diagnosis) -> None:
        """Add one."""
        for finding in found.findings:
            self.counts[finding.severity] += 1
        if found.key is None:
            return
        self.activations += 1
        self.events += found.events
        self.bytes += found.payload_bytes
        self.superseded_events += found.superseded_events
        self.superseded_bytes += found.superseded_bytes
        size = found.payload_bytes + found.superseded_bytes
        if self.largest is None or size > self.largest[0]:
            self.largest = (size, str(found.key))

    @property
    def exit_code(self) -> int:
        """By the worst finding. Notes are what any running agent's log shows, and no reason to wake anybody."""
        return EXIT_DAMAGED if self.counts["damage"] else EXIT_ODD if self.counts["warning"] else 0

    def fields(self) -> dict[str, object]:
        """The sums as JSON."""
        return {
            "events": self.events,
            "bytes": self.bytes,
            "supersededEvents": self.superseded_events,
            "supersededBytes": self.superseded_bytes,
            "largest": None if self.largest is None else {"key": self.largest[1], "bytes": self.largest[0]},
            "found": self.counts,
        }


def fields_of(found: Diagnosis) -> dict[str, object]:
    """One diagnosis as JSON."""
    head = found.head
    return {
        "key": None if found.key is None else str(found.key),
        "incarnation": None if head is None else head.fence,
        "nextOffset": None if head is None else head.next_offset,
        "retired": head is not None and head.retired,
        "events": found.events,
        "bytes": found.payload_bytes,
        "checkpoints": found.checkpoints,
        "rewinds": found.rewinds,
        "sweptRewinds": found.swept_rewinds,
        "supersededEvents": found.superseded_events,
        "supersededBytes": found.superseded_bytes,
        "written": [{"incarnation": one.incarnation, "from": one.start, "to": one.stop} for one in found.history],
        "findings": [
            {
                "severity": finding.severity,
                "kind": finding.kind,
                "offset": finding.offset,
                "text": finding.text,
                "repair": finding.repair,
            }
            for finding in found.findings
        ],
    }
