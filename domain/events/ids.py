"""Ids of aggregates: readable text, a kind and a name (``request:R17``).

The name is given by the caller, so that a retried command finds the same aggregate. Fields of events that
refer to another aggregate hold its bare name (``request_id="R17"``); only ``originator_id`` has the kind.
"""

from typing import Final

PROVIDER: Final = "provider"
LEASE: Final = "lease"
REQUEST: Final = "request"
INSTANCE: Final = "instance"
GRANT: Final = "grant"
SHARED: Final = "shared"
DECISION: Final = "decision"
ORPHAN: Final = "orphan"
RECEIPT: Final = "receipt"
REFUSALS: Final = "refusals"
EVIDENCE: Final = "evidence"
DRAIN: Final = "drain"
SITE: Final = "site"
CONFIGURATION: Final = "configuration"
ALERT: Final = "alert"
WEBHOOK: Final = "webhook"


def provider_id(provider: str) -> str:
    """Return the id of the provider of this name."""
    return f"{PROVIDER}:{provider}"


def lease_id(provider: str) -> str:
    """Return the id of the lease on a provider; also the name of its fence in the store."""
    return f"{LEASE}:{provider}"


def request_id(request: str) -> str:
    """Return the id of the request whose tag this is."""
    return f"{REQUEST}:{request}"


def instance_id(instance: str) -> str:
    """Return the id of an instance by our name for it, which is not the provider's machine id."""
    return f"{INSTANCE}:{instance}"


def grant_id(grant: str) -> str:
    """Return the id of a grant by our name for it."""
    return f"{GRANT}:{grant}"


def shared_id(resource: str) -> str:
    """Return the id of an elastic shared resource."""
    return f"{SHARED}:{resource}"


def decision_id(decision: str) -> str:
    """Return the id of a decision by its name."""
    return f"{DECISION}:{decision}"


def orphan_id(provider: str, theirs: str) -> str:
    """Return the id of an orphan by the provider's id of it."""
    return f"{ORPHAN}:{provider}/{theirs}"


def evidence_id(evidence: str) -> str:
    """Return the id of the evidence of one call."""
    return f"{EVIDENCE}:{evidence}"


def receipt_id(caller: str, key: str) -> str:
    """Return the id of the receipt for a caller's idempotency key."""
    return f"{RECEIPT}:{caller}/{key}"


def refusals_id(caller: str, day: str) -> str:
    """Return the id of what was refused to a caller on one day (``2026-03-01``): a stream that does not grow for ever."""
    return f"{REFUSALS}:{caller}/{day}"


def drain_id(host: str) -> str:
    """Return the id of the drains of a host, by its name in the cluster."""
    return f"{DRAIN}:{host}"


def site_id() -> str:
    """Return the id of the one site of a log."""
    return f"{SITE}:all"


def configuration_id(daemon: str) -> str:
    """Return the id of the configuration of a daemon, by its name."""
    return f"{CONFIGURATION}:{daemon}"


def alert_id(kind: str, subject: str) -> str:
    """Return the id of an alert by its kind and what it is about."""
    return f"{ALERT}:{kind}/{subject}"


def webhook_id(webhook: str) -> str:
    """Return the id of a webhook, by its name in the configuration."""
    return f"{WEBHOOK}:{webhook}"


def kind_of(aggregate_id: str) -> str:
    """Return what stands before the first colon: ``request``."""
    return aggregate_id.partition(":")[0]


def name_of(aggregate_id: str) -> str:
    """Return what stands behind the first colon: ``R17``."""
    return aggregate_id.partition(":")[2]
