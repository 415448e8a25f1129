using System.Text.Json;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// The newest operations that took longer than a threshold, with the time of each stage, in memory
/// (docs/adr/0052-slow-log-and-traces.md). It keeps <see cref="Kept"/> of them, at 200 bytes each, however many there
/// are. Any thread.
/// </summary>
/// <param name="node">The node, as the answers name it.</param>
/// <param name="threshold">From how long on an operation is noted; null: none is.</param>
/// <param name="clock">Tells the time of day.</param>
internal sealed class SlowLog(NodeId node, TimeSpan? threshold, TimeProvider clock)
{
    /// <summary>Operations that are kept.</summary>
    public const int Kept = 1_000;

    private readonly Lock _lock = new();
    private readonly Slot[] _slots = new Slot[Kept];
    private long _recorded;

    /// <inheritdoc cref="ILongOperations.ThresholdUs"/>
    public int ThresholdUs { get; } = threshold is { } time
        ? (int)Math.Min(time.TotalMicroseconds, int.MaxValue - 1) : int.MaxValue;

    /// <summary>Operations that were ever noted.</summary>
    public long Recorded
    {
        get
        {
            lock (_lock)
            {
                return _recorded;
            }
        }
    }

    /// <summary>Notes an operation.</summary>
    /// <param name="operation">Valid during the call.</param>
    /// <param name="traceId">Of its trace; empty: it has none.</param>
    public void Add(LongOperation operation, string traceId = "")
    {
        DateTimeOffset now = clock.GetUtcNow();
        lock (_lock)
        {
            ref Slot slot = ref _slots[_recorded % Kept];
            slot.Operation ??= new LongOperation();
            slot.Operation.Begin(operation.Tag, operation.Group, operation.Stages, operation.Key);
            slot.Operation.Status = operation.Status;
            slot.Operation.Answered = operation.Answered;
            slot.EndedAt = now;
            slot.TraceId = traceId;
            _recorded++;
        }
    }

    /// <summary>The newest operations as JSON, newest first (docs/operations.md).</summary>
    /// <param name="limit">The most that are wanted.</param>
    public byte[] Render(int limit)
    {
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream))
        {
            json.WriteStartObject();
            json.WriteNumber("node", node.Value);
            if (threshold is { } time)
            {
                json.WriteNumber("thresholdMs", time.TotalMilliseconds);
            }
            else
            {
                json.WriteNull("thresholdMs");
            }

            // Writing them takes less than a millisecond; a loop may wait for it.
            lock (_lock)
            {
                json.WriteNumber("recorded", _recorded);
                json.WriteStartArray("operations");
                for (long id = _recorded; id > Math.Max(0, _recorded - Math.Min(limit, Kept)); id--)
                {
                    ref Slot slot = ref _slots[(id - 1) % Kept];
                    Write(json, id, in slot);
                }

                json.WriteEndArray();
            }

            json.WriteEndObject();
        }

        return stream.ToArray();
    }

    private static void Write(Utf8JsonWriter json, long id, in Slot slot)
    {
        LongOperation operation = slot.Operation!;
        RequestTag tag = operation.Tag;
        uint total = operation.Answered - tag.Stamp;
        json.WriteStartObject();
        json.WriteNumber("id", id);
        json.WriteString("at", slot.EndedAt - TimeSpan.FromMicroseconds(total));
        json.WriteString("operation", OperationNames.Of((CommandKind)tag.Kind));
        json.WriteString("durability", OperationNames.Of((Durability)tag.Durability));
        if (operation.Group is { IsMeta: false } group)
        {
            json.WriteNumber("partition", group.Partition);
        }
        else
        {
            json.WriteNull("partition");
        }

        ShownKey key = ShownKey.Of(operation.Key);
        json.WriteString("key", key.Text);
        json.WriteBoolean("keyIsText", key.IsText);
        json.WriteString("status", OperationNames.Of(operation.Status));
        json.WriteString("traceId", slot.TraceId.Length > 0 ? slot.TraceId : null);
        json.WriteNumber("totalUs", total);
        json.WriteStartArray("events");
        foreach ((string name, uint us) in OperationEvents.Of(operation))
        {
            json.WriteStartObject();
            json.WriteString("name", name);
            json.WriteNumber("us", us);
            json.WriteEndObject();
        }

        json.WriteEndArray();
        json.WriteEndObject();
    }

    private struct Slot
    {
        public LongOperation? Operation;
        public DateTimeOffset EndedAt;
        public string TraceId;
    }
}
