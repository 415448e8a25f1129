using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// What a run has seen of the store, with its own writes above it. A key is asked for once. Not thread-safe.
/// </summary>
internal sealed class ScriptKeys(ScriptMeter meter)
{
    private const string ReservedPrefix = "__kahuna";

    /// <summary>Work of merging one key, in bytes: four steps.</summary>
    private const long WorkPerKey = 256;

    /// <summary>Keys that are looked for one after the other: most scripts have no more.</summary>
    private const int FewKeys = 4;

    private static readonly Comparer<ReadOnlyMemory<byte>> s_byBytes =
        Comparer<ReadOnlyMemory<byte>>.Create(static (a, b) => a.Span.SequenceCompareTo(b.Span));

    private readonly List<ScriptKeyState> _few = new(FewKeys);
    private readonly List<ScriptKeyState> _written = [];
    private Dictionary<(string Name, bool IsEphemeral), ScriptKeyState>? _others;
    private Dictionary<(string Name, bool IsEphemeral, ScriptAccess Kind), ScriptValue>? _ranges;

    /// <summary>The writes, in order of the first write of each key.</summary>
    public IReadOnlyList<ScriptWrite> Writes
    {
        get
        {
            List<ScriptWrite> writes = new(_written.Count);
            foreach (ScriptKeyState key in _written)
            {
                if (key.Write is { } write)
                {
                    writes.Add(write);
                }
            }

            return writes;
        }
    }

    /// <summary>The name that a value gives a key, a bucket or a prefix. A prefix may be empty.</summary>
    /// <exception cref="ScriptFailure">It is no such name.</exception>
    public static string NameOf(ScriptValue value, ScriptAccess kind)
    {
        string noun = kind == ScriptAccess.Prefix ? "prefix" : "key";
        int bytesMin = kind == ScriptAccess.Prefix ? 0 : 1;
        ScriptValue plain = value.Plain;
        if (plain.Kind != ScriptValueKind.String)
        {
            throw new ScriptFailure($"a {noun} must be a string, but got {ScriptText.NameOf(value)}");
        }

        int length = plain.AsBytes.Length;
        if (length < bytesMin || length > Limits.KeyBytesMax)
        {
            throw new ScriptFailure($"a {noun} must have {bytesMin} to 1,024 bytes, but has {length}");
        }

        return plain.AsString.StartsWith(ReservedPrefix, StringComparison.Ordinal)
            ? throw new ScriptFailure($"keys that begin with {ReservedPrefix} are reserved")
            : plain.AsString;
    }

    /// <summary>The key's state. Counts the key when it is touched first.</summary>
    public ScriptKeyState Touch(string name, bool isEphemeral)
    {
        if (Find(name, isEphemeral) is { } known)
        {
            return known;
        }

        meter.Keys(1);
        meter.Bytes(64 + name.Length);
        ScriptKeyState key = new(name, isEphemeral);
        if (_few.Count < FewKeys)
        {
            _few.Add(key);
        }
        else
        {
            _others ??= [];
            _others.Add((name, isEphemeral), key);
        }

        return key;
    }

    private ScriptKeyState? Find(string name, bool isEphemeral)
    {
        foreach (ScriptKeyState key in _few)
        {
            if (key.IsEphemeral == isEphemeral && key.Name == name)
            {
                return key;
            }
        }

        return _others is not null && _others.TryGetValue((name, isEphemeral), out ScriptKeyState? late) ? late : null;
    }

    /// <summary>Sets, deletes or extends a key.</summary>
    public void Write(ScriptKeyState key, ScriptWrite? write, ScriptValue? seen)
    {
        if (!key.IsWritten)
        {
            key.IsWritten = true;
            meter.Write();
            _written.Add(key);
        }

        meter.Written(SizeOf(write) - SizeOf(key.Write));
        key.Write = write;
        key.See(seen);
    }

    /// <summary>The entries of a bucket or prefix, with the run's own writes; null while they are not known.</summary>
    public ScriptValue? Entries(string name, bool isEphemeral, ScriptAccess kind)
    {
        if (_ranges is null || !_ranges.TryGetValue((name, isEphemeral, kind), out ScriptValue? read))
        {
            return null;
        }

        // Each written key is looked at.
        meter.Work(_written.Count * WorkPerKey);
        ScriptKeyState[] own = [.. _written.Where(key => key.IsEphemeral == isEphemeral && Covers(name, kind, key))];
        return own.Length == 0 ? read : Merged(read.Items, own);
    }

    private ScriptValue Merged(IReadOnlyList<ScriptValue> read, ScriptKeyState[] own)
    {
        meter.Work((read.Count + own.Length) * WorkPerKey);
        SortedDictionary<ReadOnlyMemory<byte>, ScriptValue> merged = new(s_byBytes);
        foreach (ScriptValue entry in read)
        {
            merged[Encoding.UTF8.GetBytes(entry.Key)] = entry;
        }

        foreach (ScriptKeyState key in own)
        {
            merged.Remove(key.Bytes);
            if (key.Entry is { } entry)
            {
                merged.Add(key.Bytes, entry);
            }
        }

        return meter.Made(ScriptValue.Of([.. merged.Values]));
    }

    /// <summary>Keeps what the store has of a bucket or prefix.</summary>
    public void Supply(string name, bool isEphemeral, ScriptAccess kind, IReadOnlyList<ScriptValue> entries)
    {
        meter.Keys(entries.Count);
        _ranges ??= [];
        _ranges[(name, isEphemeral, kind)] = meter.Made(ScriptValue.Of([.. entries]));
    }

    private static bool Covers(string name, ScriptAccess kind, ScriptKeyState key) => kind == ScriptAccess.Prefix
        ? key.Name.StartsWith(name, StringComparison.Ordinal)
        : KeyRouting.Bucket(key.Bytes.Span).SequenceEqual(Encoding.UTF8.GetBytes(name));

    private static long SizeOf(ScriptWrite? write) =>
        write is { } made ? made.Key.Length + (made.Value?.Length ?? 0) : 0;
}

/// <summary>What a run knows of one key. Owned by a <see cref="ScriptKeys"/>; not thread-safe.</summary>
internal sealed class ScriptKeyState(string name, bool isEphemeral)
{
    public string Name => name;

    public bool IsEphemeral => isEphemeral;

    public ReadOnlyMemory<byte> Bytes { get; } = Encoding.UTF8.GetBytes(name);

    /// <summary>The run knows whether the key exists, from the store or from its own write.</summary>
    public bool IsKnown { get; private set; }

    /// <summary>The key as the run sees it; null: it does not exist.</summary>
    public ScriptValue? Entry { get; private set; }

    /// <summary>The run has written it before.</summary>
    public bool IsWritten { get; set; }

    /// <summary>What the run does to the key at its end.</summary>
    public ScriptWrite? Write { get; set; }

    /// <summary>From now on the run sees this.</summary>
    public void See(ScriptValue? entry)
    {
        IsKnown = true;
        Entry = entry;
    }
}
