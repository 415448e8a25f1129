using Kahuna.Server.Primitives;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Gets the operations of all loops that took long, or that somebody traces (docs/adr/0052-slow-log-and-traces.md). Any
/// thread; it must neither wait nor throw.
/// </summary>
internal interface ILongOperations
{
    /// <summary>
    /// From how many microseconds an operation is long; <see cref="int.MaxValue"/>: none is, however long.
    /// </summary>
    int ThresholdUs { get; }

    /// <summary>An operation has ended.</summary>
    /// <param name="operation">Valid during the call; the loop uses the object again.</param>
    void Add(LongOperation operation);
}

/// <summary>
/// What a loop knows of an operation that took long. Its moments are as <see cref="OperationTimes.Stamp"/> tells them.
/// Owned by a loop, which uses the object again; not thread-safe.
/// </summary>
internal sealed class LongOperation
{
    /// <summary>Bytes that are kept of a key; the rest is left out.</summary>
    public const int KeyBytesMax = 128;

    private readonly byte[] _key = new byte[KeyBytesMax];
    private int _keyLength;

    /// <summary>What it is counted as, and when it came in.</summary>
    public RequestTag Tag { get; private set; }

    /// <summary>How it ended.</summary>
    public OutcomeStatus Status { get; set; }

    /// <summary>Its group; null: not known.</summary>
    public GroupId? Group { get; private set; }

    /// <summary>When it passed each stage.</summary>
    public OperationStages Stages { get; private set; }

    /// <summary>When its answer left the loop.</summary>
    public uint Answered { get; set; }

    /// <summary>The beginning of its key; empty: it has none, or it is not known.</summary>
    public ReadOnlySpan<byte> Key => _key.AsSpan(0, _keyLength);

    /// <summary>Takes down another operation.</summary>
    public void Begin(in RequestTag tag, GroupId? group, in OperationStages stages, ReadOnlySpan<byte> key)
    {
        Tag = tag;
        Group = group;
        Stages = stages;
        _keyLength = Math.Min(key.Length, KeyBytesMax);
        key[.._keyLength].CopyTo(_key);
    }
}
