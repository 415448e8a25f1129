using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Runs scripts whose keys lie in several buckets, or that need more than a partition's loop gives them: here, as an
/// optimistic transaction. Reads go to the leaders, and the writes are committed under the condition that nothing that
/// was read has changed; otherwise the script is run again. Any thread.
/// </summary>
/// <param name="coordinator">Reads and commits.</param>
/// <param name="pace">Bounds the processor time; null: the caller's own.</param>
internal sealed class ScriptDriver(TransactionCoordinator coordinator, DrivePace? pace = null)
{
    /// <summary>What a run may use: some 50 ms of a processor.</summary>
    public static readonly ScriptBudget Budget = new() { Keys = Limits.TransactionItemsMax };

    private readonly ClusterConnection _connection = coordinator.Connection;

    /// <summary>Runs a script until a run is committed, or fails by itself.</summary>
    /// <param name="program">The script.</param>
    /// <param name="parameters">The values of its parameters.</param>
    /// <param name="patience">How long the caller waits; null for the request timeout.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>What it returned, and how many keys it wrote.</returns>
    public async Task<(ScriptValue Result, int Writes)> RunAsync(
        ScriptProgram program, IReadOnlyList<ScriptParameter> parameters, TimeSpan? patience, CancellationToken ct)
    {
        bool captures = _connection.CapturesContext;
        ScriptCode code = ScriptCode.Compile(program);
        CommitDeadline time = new(_connection, patience);
        for (int tries = 1; ; tries++)
        {
            long now = _connection.Time.GetUtcNow().ToUnixTimeMilliseconds();
            ScriptRun run = new(code, parameters, now, Budget);
            SeenKeys seen = new();
            bool isFinished = await DriveAsync(run, seen, time, ct).ConfigureAwait(captures);
            IReadOnlyList<ScriptWrite> writes = isFinished ? run.Writes : [];
            if (await CommitAsync(seen, writes, time, ct).ConfigureAwait(captures))
            {
                return isFinished
                    ? (run.Result, writes.Count)
                    : throw TransactionErrors.ScriptFailed(run.Error.Message);
            }

            if (time.Left <= TimeSpan.Zero)
            {
                throw TransactionErrors.ScriptConflict(tries, time.Allowed);
            }

            await coordinator.PauseAsync(tries, ct).ConfigureAwait(captures);
        }
    }

    /// <summary>Runs until the script has ended. False: with an error.</summary>
    private async Task<bool> DriveAsync(ScriptRun run, SeenKeys seen, CommitDeadline time, CancellationToken ct)
    {
        ScriptStop stop;
        while ((stop = await AdvanceAsync(run, ct).ConfigureAwait(_connection.CapturesContext))
            is not (ScriptStop.Finished or ScriptStop.Failed))
        {
            if (stop != ScriptStop.NeedsKey)
            {
                run.Refuse(
                    "a script over several buckets reads keys one by one; get by bucket needs a script of one bucket");
                continue;
            }

            Durability durability = run.IsEphemeral ? Durability.Ephemeral : Durability.Persistent;
            byte[] key = run.Key.ToArray();
            TransactionReply reply = await MomentReads
                .RunAsync(coordinator, ToGet(key, durability, run.AtRevision), time.LeftForStep, ct)
                .ConfigureAwait(_connection.CapturesContext);
            Supply(run, key, durability, reply.Outcomes.Span, seen);
        }

        return stop == ScriptStop.Finished;
    }

    private async ValueTask<ScriptStop> AdvanceAsync(ScriptRun run, CancellationToken ct) => pace is null
        ? run.Advance()
        : await pace.RunAsync(run.Advance, ct).ConfigureAwait(_connection.CapturesContext);

    private static byte[] ToGet(byte[] key, Durability durability, long atRevision)
    {
        ByteBuffer item = ByteBuffer.Rent();
        CommandList.Append(item, new Command
        {
            Kind = CommandKind.Get,
            Durability = durability,
            Key = key,
            Flags = atRevision > 0 ? CommandFlags.AtRevision : 0,
            AtRevision = atRevision,
        });
        byte[] bytes = item.Written.ToArray();
        item.Return();
        return bytes;
    }

    private static void Supply(
        ScriptRun run, byte[] key, Durability durability, ReadOnlySpan<byte> outcomes, SeenKeys seen)
    {
        if (!OutcomeList.TryTake(ref outcomes, out Outcome outcome))
        {
            throw OperationErrors.UnknownDescription("a read of a script");
        }

        string name = Encoding.UTF8.GetString(key);
        bool isLatest = run.AtRevision == 0;
        switch (outcome.Status)
        {
            case OutcomeStatus.Found:
                seen.Add(key, durability, isLatest ? outcome.Revision : null);
                run.Supply(ScriptValue.OfEntry(
                    name,
                    outcome.ValueIsNull ? null : (ReadOnlyMemory<byte>?)outcome.Value.ToArray(),
                    outcome.Revision,
                    outcome.Number));
                break;
            case OutcomeStatus.NotFound:
                seen.Add(key, durability, isLatest ? 0 : null);
                run.Supply(null);
                break;
            default:
                run.Refuse($"the history of \"{name}\" no longer holds the revision");
                break;
        }
    }

    /// <summary>
    /// Commits the writes if what was read is still so; without writes only looks whether it is. False: it is not.
    /// </summary>
    private async Task<bool> CommitAsync(
        SeenKeys seen, IReadOnlyList<ScriptWrite> writes, CommitDeadline time, CancellationToken ct)
    {
        if (writes.Count == 0 && seen.Count <= 1)
        {
            // A single read is of one moment.
            return true;
        }

        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            TransactionBody.WriteHeader(body, seen.Count, Math.Max(1, writes.Count), 0);
            seen.WriteConditions(body);
            foreach (ScriptWrite write in writes)
            {
                CommandList.Append(body, write.ToCommand());
            }

            if (writes.Count == 0)
            {
                seen.WriteLook(body);
            }

            CommitRequest request = new()
            {
                Body = body.WrittenMemory,
                IsVerdictEnough = true,
                Patience = time.LeftForStep,
            };
            TransactionReply reply = await coordinator.RunAsync(request, ct)
                .ConfigureAwait(_connection.CapturesContext);
            return reply.Holds;
        }
        finally
        {
            body.Return();
        }
    }

    /// <summary>What a run has read: each key with its revision. Owned by one run.</summary>
    private sealed class SeenKeys
    {
        private readonly List<(byte[] Key, Durability Durability, long Revision)> _keys = [];

        /// <summary>Keys.</summary>
        public int Count => _keys.Count;

        /// <summary>A key was read: at its latest revision, 0 when it is absent. A run reads it once.</summary>
        public void Add(byte[] key, Durability durability, long? latest)
        {
            if (latest is { } revision)
            {
                _keys.Add((key, durability, revision));
            }
        }

        /// <summary>Appends a condition for each key.</summary>
        public void WriteConditions(ByteBuffer body)
        {
            foreach ((byte[] key, Durability durability, long revision) in _keys)
            {
                CommandList.Append(body, new Command
                {
                    Kind = CommandKind.Exists,
                    Durability = durability,
                    Flags = revision == 0 ? CommandFlags.IfAbsent : CommandFlags.IfRevision,
                    ComparedRevision = revision,
                    Key = key,
                });
            }
        }

        /// <summary>Appends a look at one key: a transaction does something.</summary>
        public void WriteLook(ByteBuffer body) => CommandList.Append(body, new Command
        {
            Kind = CommandKind.Exists,
            Durability = _keys[0].Durability,
            Key = _keys[0].Key,
        });
    }
}
