using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Runs scripts within this partition, in the language of their entry's feature level: reads what they ask for, and
/// carries out their writes together when they have ended well. Nothing is written before. Owned by one
/// <see cref="KeyValueTable"/>; not thread-safe.
/// </summary>
internal sealed class ScriptRunner(KeyStore store, KeyValueTable table) : IOutcomeMemory
{
    /// <summary>
    /// What a script may use up here: some milliseconds of the loop. It is part of what a script does, so all nodes
    /// must have the same, and a change of it needs a feature level.
    /// </summary>
    public static readonly ScriptBudget Budget = new()
    {
        Steps = 20_000,
        Keys = 1_000,
        RangeLength = 20_000,
        Bytes = 4 << 20,
        ValueBytesMax = Limits.ValueBytesDefault,
        Writes = Limits.TransactionItemsMax,
        WrittenBytes = Limits.TransactionBytesMax,
    };

    /// <summary>Parsing and compiling a byte of text takes about as long as this many steps.</summary>
    private const int StepsPerByte = 10;

    private const string NothingApplied = "; nothing was applied";
    private const string TwoLevels =
        "the script has both persistent and ephemeral keys; it takes keys of one durability";

    private readonly ScriptCache _cache = new(store);
    private readonly List<ScriptValue> _entries = [];
    private CommandAnswer? _item;

    /// <summary>The run needs more than one partition has.</summary>
    private bool _isTooWide;

    /// <summary>Runs the script of a command.</summary>
    public void Apply(scoped in Command command, ClusterTime time, CommandAnswer answer)
    {
        bool decodes = ScriptBody.TryRead(command.Value, out ScriptBody body);
        decodes &= body.TryReadParameters(out ScriptParameter[] parameters);
        InvariantException.Require(decodes, "a script that passed the door decodes");
        CompiledScript script = _cache.Find(body.Text);
        if (script.Code is not { } code)
        {
            Fail(script.Error, answer);
            return;
        }

        ScriptRun run = new(code, parameters, time.Ms, Budget);
        _isTooWide = false;
        ScriptStop end;
        try
        {
            end = Drive(run, in command, time);
        }
        catch (Exception bug) when (bug is not (InvariantException or OutOfMemoryException))
        {
            // Nothing is written yet, and every node that carries out this entry comes here.
            Fail($"the server failed to run the script ({bug.GetType().Name}); nothing was applied", answer);
            return;
        }

        script.StepsMax = Math.Max(script.StepsMax, run.StepsTaken);
        if (end != ScriptStop.Finished)
        {
            Fail(run.Error.Message, answer, _isTooWide || run.IsOverBudget);
            return;
        }

        if (RefusalOf(run.Writes, in command) is { } refusal)
        {
            Fail(refusal, answer, isTooWide: true);
            return;
        }

        Write(run.Writes, time);
        if (answer.IsWanted)
        {
            ByteBuffer result = ByteBuffer.Rent();
            run.Result.Write(result);
            answer.Give(new Outcome(OutcomeStatus.Applied, 0, run.Writes.Count)
            {
                HasValue = true,
                Value = result.Written,
            });
            result.Return();
        }
    }

    /// <summary>
    /// What running the command is expected to cost, in steps: the most that its text has taken here so far. A text
    /// that is not known costs a whole budget, and its parsing. Changes nothing.
    /// </summary>
    public int StepsOf(scoped in Command command) =>
        ScriptBody.TryRead(command.Value, out ScriptBody body) && _cache.StepsOf(body.Text) is { } known
            ? known
            : Budget.Steps + (StepsPerByte * command.Value.Length);

    /// <summary>A write's outcome is remembered as a part of the script's.</summary>
    void IOutcomeMemory.Remember(scoped in Outcome outcome) =>
        throw new InvariantException("Invariant broken: a write of a script has no number of its own.");

    /// <summary>
    /// Ends the script with an error. The outcome's number is 1 for one that needs more than a partition has, or may
    /// use: it may be run as a transaction.
    /// </summary>
    private static void Fail(string sentence, CommandAnswer answer, bool isTooWide = false)
    {
        if (answer.IsWanted)
        {
            answer.Give(new Outcome(OutcomeStatus.ScriptFailed, 0, isTooWide ? ScriptEnds.TooWide : 0)
            {
                HasValue = true,
                Value = Encoding.UTF8.GetBytes(sentence),
            });
        }
    }

    /// <summary>Runs the script to its end: Finished or Failed.</summary>
    private ScriptStop Drive(ScriptRun run, scoped in Command command, ClusterTime time)
    {
        ScriptStop stop;
        while ((stop = run.Advance()) is not (ScriptStop.Finished or ScriptStop.Failed))
        {
            bool isBucket = stop != ScriptStop.NeedsKey;
            ReadOnlySpan<byte> name = run.Key.Span;
            if (run.IsEphemeral != (command.Durability == Durability.Ephemeral))
            {
                Leave(run, TwoLevels);
            }
            else if (stop == ScriptStop.NeedsPrefix)
            {
                Leave(run, "a scan by prefix may need several partitions");
            }
            else if (!ScriptTarget.IsOfBucket(name, isBucket, command.Key))
            {
                Leave(run, Outside(name, command.Key));
            }
            else if (isBucket)
            {
                bool isWhole = BucketReader.Read(store, name, time, _entries, Budget.Keys, Budget.Bytes);
                run.SupplyEntries(_entries, isWhole);
                _entries.Clear();
            }
            else
            {
                Supply(run, name, run.AtRevision, time);
            }
        }

        return stop;
    }

    private void Leave(ScriptRun run, string reason)
    {
        _isTooWide = true;
        run.Refuse(reason);
    }

    /// <summary>
    /// Why the writes cannot be carried out here; null: they can. A key that was only written was not asked for.
    /// </summary>
    private static string? RefusalOf(IReadOnlyList<ScriptWrite> writes, scoped in Command command)
    {
        foreach (ScriptWrite write in writes)
        {
            if (write.IsEphemeral != (command.Durability == Durability.Ephemeral))
            {
                return TwoLevels + NothingApplied;
            }

            if (!ScriptTarget.IsOfBucket(write.Key.Span, isBucket: false, command.Key))
            {
                return Outside(write.Key.Span, command.Key) + NothingApplied;
            }
        }

        return null;
    }

    private static string Outside(ReadOnlySpan<byte> name, ReadOnlySpan<byte> key) =>
        $"\"{Encoding.UTF8.GetString(name)}\" is not in the bucket of \"{Encoding.UTF8.GetString(key)}\"; a script "
            + "takes keys of one bucket";

    private void Supply(ScriptRun run, ReadOnlySpan<byte> name, long atRevision, ClusterTime time)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        Command read = new()
        {
            Kind = CommandKind.Get,
            Key = name,
            Flags = atRevision > 0 ? CommandFlags.AtRevision : 0,
            AtRevision = atRevision,
        };
        KeyReader.Read(store, in read, time, time, bytes, default);
        Outcome.TryRead(bytes.Written, out Outcome outcome);
        switch (outcome.Status)
        {
            case OutcomeStatus.Found:
                run.Supply(ScriptValue.OfEntry(
                    Encoding.UTF8.GetString(name),
                    outcome.ValueIsNull ? null : (ReadOnlyMemory<byte>?)outcome.Value.ToArray(),
                    outcome.Revision,
                    outcome.Number));
                break;
            case OutcomeStatus.NotFound:
                run.Supply(null);
                break;
            default:
                run.Refuse($"the history of \"{Encoding.UTF8.GetString(name)}\" no longer holds revision {atRevision}");
                break;
        }

        bytes.Return();
    }

    private void Write(IReadOnlyList<ScriptWrite> writes, ClusterTime time)
    {
        if (writes.Count == 0)
        {
            return;
        }

        _item ??= new CommandAnswer(this);
        store.Changes.BeginTransaction();
        foreach (ScriptWrite write in writes)
        {
            store.DropOld(time);
            Command item = write.ToCommand();
            _item.Begin(null);
            table.ApplyToKey(in item, time, store.Keys.HashOf(item.Key), _item);
        }

        store.Changes.EndTransaction();
    }
}
