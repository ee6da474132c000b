"""The whole error tree. Every error that a user can meet carries its ERR id and says what to do next."""

from __future__ import annotations


class PyocoError(Exception):
    """The root of every error that pyoco-runtime raises on purpose."""

    number: int | None = None
    """The number that the ERR and the MSG id share; None for errors that never leave the process."""

    @property
    def err_id(self) -> str | None:
        """The id that HTTP answers, logs and dead letters carry."""
        return None if self.number is None else f"ERR-PYOCO-{self.number:04d}"

    @property
    def msg_id(self) -> str | None:
        """The id of the text in the message catalogue."""
        return None if self.number is None else f"MSG-PYOCO-{self.number:04d}"


# -- what the person at the keyboard can mend -------------------------------------------------------------------------


class UserError(PyocoError):
    """Something the user can fix: the program says what and exits with 1."""

    number = 18


class InvalidSetting(UserError):
    """A setting that does not parse or is out of range; names the setting, its source and what would be right."""

    number = 25


class InvalidLayout(UserError):
    """A supervisor.toml that cannot be started; names file, place, what was found and what would be right."""

    number = 26


class AddressInUse(UserError):
    """A port that we were told to listen on belongs to somebody else."""

    number = 27


class StoreLocked(UserError):
    """The embedded server's store directory is in use by another process."""

    number = 28


class InvalidFlowFile(UserError):
    """A flow.yaml that cannot be executed; names the key, the line where it is known, and what would be right."""

    number = 2


# -- the broker -------------------------------------------------------------------------------------------------------


class NatsUnavailable(PyocoError):
    """NATS cannot be reached just now; whoever asked may ask again later."""

    number = 3


class NotSent(NatsUnavailable):
    """NATS was away before anything was sent: surely nothing has happened."""


class LinkClosed(NatsUnavailable):
    """The connection ended for good; the link actor crashes with it and its supervisor starts a new one."""


class NatsServerDied(PyocoError):
    """The embedded nats-server ended without being asked to."""

    number = 29


# -- runs -------------------------------------------------------------------------------------------------------------


class Unreadable(PyocoError):
    """A stored value that is not what its place says; another program wrote it, or it was damaged."""

    number = 34


class RevisionConflict(PyocoError):
    """Somebody else has written since: read again and decide anew."""


class RunExists(PyocoError):
    """There is a run with that id."""


class WheelGone(PyocoError):
    """The wheel is not in the store any more."""


class WheelNotFound(PyocoError):
    """There is no such wheel; answered to whoever asked for it by name."""

    number = 23


class WheelConflict(PyocoError):
    """The store has this version of the package or a newer one; names the newest."""

    number = 22


class InvalidWheel(PyocoError):
    """A request about wheels that makes no sense; says what would be right."""

    number = 2


class WheelTooLarge(InvalidWheel):
    """The wheel has more bytes than are accepted."""


class WheelSyncFailed(PyocoError):
    """Wheels could not be downloaded or installed; the old ones stay in use."""

    number = 24


class InvalidQuery(PyocoError):
    """A list was asked for in a way that makes no sense; says what would be right."""

    number = 17


class InvalidRequest(PyocoError):
    """A request that cannot be understood or is against the rules; says what to change."""

    number = 2


class RunNotFound(PyocoError):
    """There is no such run, or it belongs to somebody else: which of them is told to nobody."""

    number = 5


class WorkflowTooLarge(PyocoError):
    """A flow.yaml over the limit."""

    number = 16


class InvalidWorkersRequest(PyocoError):
    """Workers were asked for, or changed, in a way that makes no sense; says what would be right."""

    number = 19


class WorkerNotFound(PyocoError):
    """There is no such worker."""

    number = 20


class LetterNotFound(PyocoError):
    """There is no such dead letter, or it belongs to somebody else."""

    number = 36


class NotReplayable(PyocoError):
    """A dead letter from which no run can be made; says why."""

    number = 37


class KeyReused(PyocoError):
    """An idempotency key that was used for another request before."""

    number = 38


class BodyTooLarge(PyocoError):
    """A request body over the limit."""

    number = 40


class Dropped(PyocoError):
    """A watcher was so far behind that its news were thrown away: it has to look at everything anew."""


class RunnerUnavailable(PyocoError):
    """No process that could execute the flow can be started."""

    number = 35


# -- who may ask ------------------------------------------------------------------------------------------------------


class ApiKeyRequired(PyocoError):
    """The request carries no API key, and one is needed."""

    number = 14

    def __init__(self) -> None:
        super().__init__("api key required")


class InvalidApiKey(PyocoError):
    """The API key is malformed, unknown, revoked or wrong; which of them is told to nobody."""

    number = 15

    def __init__(self) -> None:
        super().__init__("invalid api key")


class Busy(PyocoError):
    """Too many wait for the same thing; whoever asked may ask again in a moment."""

    number = 41


class AdminOnly(PyocoError):
    """The API key is right, but this is for keys that were made with --admin."""

    number = 39


# -- the house --------------------------------------------------------------------------------------------------------


class ActorError(PyocoError):
    """An error of the actor runtime itself."""


class InvalidSpec(ActorError):
    """A supervisor specification that cannot be started, found before anything starts."""


class StartTimeout(ActorError):
    """A child did not say that it is ready within its start time."""

    number = 30


class RestartIntensityExceeded(ActorError):
    """A supervisor gave up: too many restarts within its window."""

    number = 31


class ChildStuck(ActorError):
    """A child was cancelled and did not end within the kill time."""

    number = 32


class CancelledByStranger(ActorError):
    """Code outside of the supervisor cancelled an actor's task; counts as a crash of that actor."""


class NoSuchActor(ActorError):
    """No actor has that path; the message lists those that there are."""

    number = 33


class NotRunning(ActorError):
    """The supervisor is down or going down and takes no new children."""


class DuplicateChild(ActorError):
    """A live child has that name already."""


class ChannelClosed(ActorError):
    """The tree has closed the channel; nothing will come any more."""
