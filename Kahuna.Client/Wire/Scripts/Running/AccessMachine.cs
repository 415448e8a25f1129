namespace Kahuna.Wire.Scripts.Running;

/// <summary>Carries out the data statements of a run, as far as what it has seen allows. Not thread-safe.</summary>
internal sealed class AccessMachine(ScriptMeter meter, ScriptKeys keys)
{
    private static readonly int s_guards = Enum.GetValues<ScriptGuard>().Length;

    private readonly bool[] _did = new bool[s_guards];
    private ScriptValue? _supplied;
    private bool _isSupplied;

    /// <summary>The last statement of the kind did nothing, or there was none.</summary>
    public bool DidNothing(ScriptGuard guard) => !_did[(int)guard];

    /// <summary>Gives the current read of a revision its answer.</summary>
    public void SupplyRevision(ScriptValue? entry) => (_supplied, _isSupplied) = (entry, true);

    /// <summary>The outcome of the statement; null while it needs something of the store.</summary>
    public ScriptValue? Run(AccessCall call)
    {
        AccessStep step = call.Step;
        switch (step.Kind)
        {
            case ScriptAccess.Bucket or ScriptAccess.Prefix:
                return keys.Entries(call.Name, step.IsEphemeral, step.Kind) is { } entries
                    ? Found(entries.Items.Count > 0, entries)
                    : null;
            case ScriptAccess.Get or ScriptAccess.Exists when step.HasOperand:
                return ReadRevision(step);
        }

        ScriptKeyState key = keys.Touch(call.Name, step.IsEphemeral);
        if (!key.IsKnown && (step.Kind != ScriptAccess.Set || step.HasCondition))
        {
            return null;
        }

        return step.Kind switch
        {
            ScriptAccess.Get => Found(key.Entry is not null, key.Entry ?? ScriptValue.Null),
            ScriptAccess.Exists => Found(key.Entry is not null, ScriptValue.Of(key.Entry is not null)),
            ScriptAccess.Set => Set(call, key),
            ScriptAccess.Delete => Delete(key),
            _ => Extend(call, key),
        };
    }

    private ScriptValue? ReadRevision(AccessStep step)
    {
        if (!_isSupplied)
        {
            return null;
        }

        _isSupplied = false;
        bool exists = _supplied is not null;
        return Found(exists, step.Kind == ScriptAccess.Get ? _supplied ?? ScriptValue.Null : ScriptValue.Of(exists));
    }

    private ScriptValue Set(AccessCall call, ScriptKeyState key)
    {
        ReadOnlyMemory<byte>? value = Stored(call.Operand!);
        meter.Value(value?.Length ?? 0);
        if (!Holds(call, key))
        {
            return Did(ScriptGuard.Set, false);
        }

        ScriptValue seen = ScriptValue.OfEntry(
            key.Name, value, ScriptValue.UnknownRevision, call.TtlMs ?? ScriptValue.NeverExpires);
        meter.Made(seen);
        keys.Write(
            key,
            new ScriptWrite(
                key.Bytes, key.IsEphemeral, ScriptWriteKind.Set, value, call.TtlMs ?? 0, call.Step.WithoutHistory),
            seen);
        return Did(ScriptGuard.Set, true);
    }

    private ScriptValue Delete(ScriptKeyState key)
    {
        if (key.Entry is null)
        {
            return Did(ScriptGuard.Deleted, false);
        }

        keys.Write(
            key,
            new ScriptWrite(key.Bytes, key.IsEphemeral, ScriptWriteKind.Delete, null, 0, WithoutHistory: false),
            null);
        return Did(ScriptGuard.Deleted, true);
    }

    private ScriptValue Extend(AccessCall call, ScriptKeyState key)
    {
        long ttlMs = Milliseconds(call.Operand!, "extend");
        if (key.Entry is not { } seen)
        {
            return Did(ScriptGuard.Extended, false);
        }

        ScriptWrite write = key.Write is { Kind: ScriptWriteKind.Set } set
            ? set with { TtlMs = ttlMs }
            : new ScriptWrite(key.Bytes, key.IsEphemeral, ScriptWriteKind.Extend, null, ttlMs, WithoutHistory: false);
        ReadOnlyMemory<byte>? value = seen.Value.Kind == ScriptValueKind.Null
            ? (ReadOnlyMemory<byte>?)null
            : seen.Value.AsBytes;
        keys.Write(key, write, meter.Made(ScriptValue.OfEntry(key.Name, value, seen.Revision, ttlMs)));
        return Did(ScriptGuard.Extended, true);
    }

    private static bool Holds(AccessCall call, ScriptKeyState key)
    {
        AccessStep step = call.Step;
        if ((step.IfAbsent && key.Entry is not null) || (step.IfPresent && key.Entry is null))
        {
            return false;
        }

        if (call.Compared is { } compared)
        {
            ReadOnlyMemory<byte>? bytes = Stored(compared);
            if (key.Entry is not { } entry || (entry.Value.Kind == ScriptValueKind.Null) != (bytes is null)
                || (bytes is { } wanted && !entry.Value.AsBytes.Span.SequenceEqual(wanted.Span)))
            {
                return false;
            }
        }

        return call.ComparedRevision is not { } revision
            || (key.Entry is { } present && RevisionOf(present) == Integer(revision, "CMPREV"));
    }

    /// <summary>The revision of an entry.</summary>
    /// <exception cref="ScriptFailure">The run has written it itself.</exception>
    public static long RevisionOf(ScriptValue entry) => entry.Revision != ScriptValue.UnknownRevision
        ? entry.Revision
        : throw new ScriptFailure(
            $"the revision of \"{entry.Key}\" is not known before the script ends, because it has written the key");

    /// <summary>What the store keeps of a value; null: the null value.</summary>
    private static ReadOnlyMemory<byte>? Stored(ScriptValue value)
    {
        ScriptValue plain = value.Plain;
        return plain.Kind switch
        {
            ScriptValueKind.Null => (ReadOnlyMemory<byte>?)null,
            ScriptValueKind.Bytes => plain.AsBytes,
            ScriptValueKind.Array => throw new ScriptFailure("an array cannot be stored; use to_json"),
            _ => ScriptText.Of(plain),
        };
    }

    /// <summary>The revision behind AT, which is 1 or greater.</summary>
    public static long RevisionAsked(ScriptValue value) => Integer(value, "AT") is var revision and > 0
        ? revision
        : throw new ScriptFailure("AT needs a revision of 1 or greater");

    /// <summary>A time to live.</summary>
    public static long Milliseconds(ScriptValue value, string user) =>
        Integer(value, user) is var ms && ms is >= 1 and <= Limits.TtlMsMax
            ? ms
            : throw new ScriptFailure($"{user} needs 1 to {Limits.TtlMsMax} milliseconds, but got {ms}");

    private static long Integer(ScriptValue value, string user) => value.Plain.Kind == ScriptValueKind.Integer
        ? value.Plain.AsInteger
        : throw new ScriptFailure($"{user} needs an integer, but got {ScriptText.NameOf(value)}");

    private ScriptValue Found(bool found, ScriptValue outcome)
    {
        _did[(int)ScriptGuard.Found] = found;
        return outcome;
    }

    private ScriptValue Did(ScriptGuard guard, bool did)
    {
        _did[(int)guard] = did;
        return ScriptValue.Of(did);
    }
}

/// <summary>A data statement with its operands. Immutable.</summary>
internal sealed record AccessCall(
    AccessStep Step,
    string Name,
    ScriptValue? Operand,
    long? TtlMs,
    ScriptValue? Compared,
    ScriptValue? ComparedRevision);
