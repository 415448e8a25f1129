using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Executes one command for a unary caller: through the admission here, or through the forwarder if another node leads.
/// Any thread. Continuations run in the caller's context: any thread in a server, the run's queue in the simulator.
/// </summary>
internal sealed class UnaryExecutor(RequestAdmission admission, IForwarder forwarder)
{
    /// <summary>
    /// Maximum of concurrently forwarded calls whose reply may hold a value; further ones wait. Replies of another node
    /// arrive whether or not this node's callers read them, so their number is the bound: 256 values of the default
    /// size are 256 MiB, and 256 calls of 2 ms each are 128,000 per second.
    /// </summary>
    internal const int ForwardedValuesMax = 256;

    private readonly SemaphoreSlim _forwardedValues = new(ForwardedValuesMax, ForwardedValuesMax);

    /// <summary>The node's traces; null: nothing is traced.</summary>
    public ServerTraces? Traces => admission.Traces;

    /// <summary>
    /// Executes a command and returns the bytes of its outcome (Wire/Outcomes/Outcome) if it is a normal reply. Any
    /// other outcome throws <see cref="RpcException"/> with its code and the outcome trailer. Takes ownership of the
    /// buffer.
    /// </summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="timeLeft">Time until the caller's deadline; null: no deadline.</param>
    /// <param name="ct">Cancelled when the caller no longer waits.</param>
    public Task<byte[]> ExecuteAsync(ByteBuffer command, TimeSpan? timeLeft, CancellationToken ct) =>
        ExecuteWantedAsync(command, timeLeft, ct, OutcomeStatus.Unset);

    /// <inheritdoc cref="ExecuteAsync"/>
    /// <param name="wanted">An error that is returned like a normal reply.</param>
    public async Task<byte[]> ExecuteWantedAsync(
        ByteBuffer command, TimeSpan? timeLeft, CancellationToken ct, OutcomeStatus wanted)
    {
        bool isRead = CommandKinds.IsRead((CommandKind)command.Written[0]);
        byte[] outcome;
        try
        {
            outcome = await OutcomeAsync(command, WaitMs(timeLeft), ct);
        }
        catch (OperationCanceledException)
        {
            throw OutcomeErrors.Build(
                StatusCode.DeadlineExceeded,
                isRead
                    ? "The deadline passed before the reply arrived."
                    : "The deadline passed before the reply arrived; whether the operation was applied is not known.",
                isRead ? OutcomeErrors.DidNotHappen : OutcomeErrors.Unknown);
        }

        if (!OutcomeErrors.IsNormal((OutcomeStatus)outcome[0]) && (OutcomeStatus)outcome[0] != wanted)
        {
            Outcome.TryRead(outcome, out Outcome error);
            throw OutcomeErrors.ToException(error);
        }

        return outcome;
    }

    /// <summary>Executes a command and returns the bytes of any outcome. Takes ownership of the buffer.</summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="waitMs">The longest wait, here and at the leader.</param>
    /// <param name="ct">Cancelled when the caller no longer waits; ends the wait.</param>
    /// <exception cref="OperationCanceledException">The caller no longer waits or the deadline passed, and the outcome
    /// is not known.</exception>
    public async Task<byte[]> OutcomeAsync(ByteBuffer command, uint waitMs, CancellationToken ct)
    {
        byte[] copy = new byte[command.Length];
        ushort trace = admission.Traces is { Contexts.IsOn: true, Current: { } current } traces
            ? traces.Contexts.Begin(current.Context)
            : (ushort)0;
        UnaryReplySink call = new(admission.Router.Loops, admission.Room, trace);
        NodeTime began = admission.Router.Now;
        if (!admission.AcceptOne(
            command, call, waitMs, CallerOfCall.Current, copy, out (OutcomeStatus Status, string? Sentence) refusal))
        {
            admission.Router.Refusals.Add(refusal.Status);
            return Error(refusal.Status, refusal.Sentence!);
        }

        byte[] outcome = await call.ReplyAsync(ct);
        OutcomeStatus first = (OutcomeStatus)outcome[0];
        bool mayHaveHappened = OutcomeStatuses.MayHaveHappened(first);
        // The forwarder tries again after a pause, for as long as the caller waits.
        bool isHeld = first == OutcomeStatus.KeyInTransaction;
        if (!isHeld
            && (OutcomeStatuses.RetryOf(first) != RetryRule.AnotherWay || (mayHaveHappened && !IsNumbered(copy))))
        {
            return outcome;
        }

        if (!MayReturnValue(copy))
        {
            return await ForwardAsync(copy, mayHaveHappened, began + waitMs, ct);
        }

        await _forwardedValues.WaitAsync(ct);
        try
        {
            return admission.Room.Used > admission.Room.BytesMax
                ? Error(
                    mayHaveHappened ? OutcomeStatus.Unknown : OutcomeStatus.Busy,
                    "The node's budget for unread replies is used up; try again later.")
                : await ForwardAsync(copy, mayHaveHappened, began + waitMs, ct);
        }
        finally
        {
            _forwardedValues.Release();
        }
    }

    /// <summary>
    /// The outcome of a checked command that the caller of this call may not send, where it is not sent as it is; null:
    /// it may, and the command says whose account it is charged to.
    /// </summary>
    public byte[]? Admit(byte[] command) =>
        admission.Gate is { } gate
        && Command.TryRead(command, out Command decoded)
        && gate.Look(CallerOfCall.Current).Admit(in decoded, command, out OutcomeStatus status) is { } sentence
            ? Error(status, sentence) : null;

    /// <summary>
    /// For whom a script of this call runs: asked about everything that it reads and writes, unless all is allowed.
    /// </summary>
    public ScriptCaller CallerOfScripts() =>
        admission.Gate is { } gate
        && CallerOfCall.Current is var caller
        && gate.Look(caller) is { IsUnchecked: false } pass
            ? new ScriptCaller(
                (scoped in Command command, out OutcomeStatus status) =>
                    gate.Look(caller).RefuseInScript(in command, out status),
                pass.Account)
            : default;

    private static byte[] Error(OutcomeStatus status, string sentence)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        AccessPass.WriteRefusal(buffer, status, sentence);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private Task<byte[]> ForwardAsync(byte[] command, bool mayHaveHappened, NodeTime until, CancellationToken ct)
    {
        // After a pause of this process, the reply may arrive before the overdue deadline timer fires.
        long leftMs = until - admission.Router.Now;
        if (leftMs > 0)
        {
            return forwarder.ForwardAsync(command, mayHaveHappened, TimeSpan.FromMilliseconds(leftMs), ct);
        }

        return mayHaveHappened
            ? throw new OperationCanceledException()
            : Task.FromResult(Error(OutcomeStatus.Expired, "The time limit passed before the operation started."));
    }

    /// <summary>Excludes long polls: there are many at a time, and their replies are small.</summary>
    private static bool MayReturnValue(byte[] bytes) =>
        Command.TryRead(bytes, out Command command)
        && (command.Has(CommandFlags.ReturnPrevious)
            || (command.IsRead && !CommandKinds.Has(command.Kind, CommandTraits.MayBeHeld)));

    private static bool IsNumbered(byte[] bytes) =>
        Command.TryRead(bytes, out Command command) && command.Has(CommandFlags.Session);

    private static uint WaitMs(TimeSpan? timeLeft) =>
        (uint)Math.Clamp(timeLeft?.TotalMilliseconds ?? double.MaxValue, 1, Wire.Limits.CommandWaitMsMax);
}
