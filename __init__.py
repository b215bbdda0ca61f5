"""Durable, fenced, event-sourced session logs for AI agents."""

from incarnate.actors.async_session import AsyncSession
from incarnate.actors.async_system import AsyncSessionSystem
from incarnate.actors.async_view import AsyncView
from incarnate.actors.changes import ChangeStream
from incarnate.actors.directory import ActivationRef
from incarnate.actors.metrics import Histogram, Metrics
from incarnate.actors.mirror import Mirror, MirrorStatus
from incarnate.actors.session import Session
from incarnate.actors.system import SessionSystem
from incarnate.actors.view import View
from incarnate.domain.checkpoints import Checkpoint, EffectEntry, Seed
from incarnate.domain.codec import decode_event, encode_appended, encode_event
from incarnate.domain.commands import (
    Append,
    AppendMany,
    Claim,
    GetCheckpoint,
    GetHead,
    LatestCheckpoint,
    Lease,
    NextTurn,
    PutCheckpoint,
    Replay,
    Retire,
    Subscribe,
    Unsubscribe,
)
from incarnate.domain.diagnosis import Diagnosis, Finding, Stretch
from incarnate.domain.errors import (
    AskTimeoutError,
    BackingOffError,
    CallDepthError,
    CheckpointError,
    ClosedError,
    CorruptError,
    DialectError,
    EventShapeError,
    ForeignLoopError,
    ForkedError,
    HeadMovedError,
    IncarnateError,
    KeyFormatError,
    KeyTakenError,
    LogCorruptionError,
    LogMismatchError,
    LogRewoundError,
    MailboxFullError,
    MalformedCommandError,
    MissingExtraError,
    OffsetError,
    OutcomeUnknownError,
    OutOfRangeError,
    ReadOnlyError,
    ReentrantCallError,
    RefusedError,
    RetiredError,
    SimulationFailedError,
    StaleIncarnationError,
    StoreBusyError,
    StoreFileError,
    StoreServerError,
    StoreUrlError,
    UnavailableError,
    UnencodableEventError,
    UnknownCommandError,
    ViewBehindError,
    ViewFailedError,
    WouldRewindError,
)
from incarnate.domain.events import (
    AppendedEvent,
    AssistantMessage,
    Compaction,
    FailedOutcome,
    Opaque,
    Reasoning,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnError,
    TurnStart,
    Usage,
    UserMessage,
)
from incarnate.domain.heads import ExpectedHead, Head
from incarnate.domain.keys import ActivationKey
from incarnate.domain.notices import Appended, FenceMoved, ViewChanged, ViewReset
from incarnate.domain.projections.analysis import ReplayAnalysis
from incarnate.domain.projections.base import Change, Projection, apply_change
from incarnate.domain.projections.frames import ClientFrames
from incarnate.domain.projections.model_history import ModelHistory
from incarnate.domain.projections.model_messages import Message
from incarnate.domain.projections.studio import StudioTranscript
from incarnate.domain.projections.usage import UsageTotals
from incarnate.domain.renderings.anthropic import to_anthropic
from incarnate.domain.renderings.openai_chat import to_openai_chat
from incarnate.domain.renderings.openai_responses import to_openai_responses
from incarnate.domain.rewinds import Rewind
from incarnate.storage.copying import Copied
from incarnate.storage.faulty import FaultyStore
from incarnate.storage.locate import open_store
from incarnate.storage.plugins import register_store
from incarnate.storage.port import ActivationInfo, Store, Swept
from incarnate.storage.transcript_log import TranscriptLog
from incarnate.storage.transcripts import TranscriptFile

__all__ = [
    "ActivationInfo",
    "ActivationKey",
    "ActivationRef",
    "Append",
    "AppendMany",
    "Appended",
    "AppendedEvent",
    "AskTimeoutError",
    "AssistantMessage",
    "AsyncSession",
    "AsyncSessionSystem",
    "AsyncView",
    "BackingOffError",
    "CallDepthError",
    "Change",
    "ChangeStream",
    "Checkpoint",
    "CheckpointError",
    "Claim",
    "ClientFrames",
    "ClosedError",
    "Compaction",
    "Copied",
    "CorruptError",
    "Diagnosis",
    "DialectError",
    "EffectEntry",
    "EventShapeError",
    "ExpectedHead",
    "FailedOutcome",
    "FaultyStore",
    "FenceMoved",
    "Finding",
    "ForeignLoopError",
    "ForkedError",
    "GetCheckpoint",
    "GetHead",
    "Head",
    "HeadMovedError",
    "Histogram",
    "IncarnateError",
    "KeyFormatError",
    "KeyTakenError",
    "LatestCheckpoint",
    "Lease",
    "LogCorruptionError",
    "LogMismatchError",
    "LogRewoundError",
    "MailboxFullError",
    "MalformedCommandError",
    "Message",
    "Metrics",
    "Mirror",
    "MirrorStatus",
    "MissingExtraError",
    "ModelHistory",
    "NextTurn",
    "OffsetError",
    "Opaque",
    "OutOfRangeError",
    "OutcomeUnknownError",
    "Projection",
    "PutCheckpoint",
    "ReadOnlyError",
    "Reasoning",
    "ReentrantCallError",
    "RefusedError",
    "Replay",
    "ReplayAnalysis",
    "Retire",
    "RetiredError",
    "Rewind",
    "Seed",
    "Session",
    "SessionEvent",
    "SessionSystem",
    "SimulationFailedError",
    "StaleIncarnationError",
    "Store",
    "StoreBusyError",
    "StoreFileError",
    "StoreServerError",
    "StoreUrlError",
    "Stretch",
    "StudioTranscript",
    "Subscribe",
    "Swept",
    "SystemMessage",
    "ToolCall",
    "ToolResult",
    "TranscriptFile",
    "TranscriptLog",
    "TurnEnd",
    "TurnError",
    "TurnStart",
    "UnavailableError",
    "UnencodableEventError",
    "UnknownCommandError",
    "Unsubscribe",
    "Usage",
    "UsageTotals",
    "UserMessage",
    "View",
    "ViewBehindError",
    "ViewChanged",
    "ViewFailedError",
    "ViewReset",
    "WouldRewindError",
    "apply_change",
    "decode_event",
    "encode_appended",
    "encode_event",
    "open_store",
    "register_store",
    "to_anthropic",
    "to_openai_chat",
    "to_openai_responses",
]
