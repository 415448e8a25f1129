using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Api.Watches;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api;

/// <summary>
/// The changes of one watch of a foreign client, sent as messages at the caller's pace. Owned by its call; steps run as
/// those of its base.
/// </summary>
/// <param name="hub">The node's watches.</param>
/// <param name="keys">What is watched.</param>
/// <param name="messages">Makes the messages.</param>
/// <param name="responses">Takes them.</param>
/// <param name="execute">Executes a command.</param>
/// <param name="access">What may be watched; null: everything.</param>
/// <param name="ended">Cancelled when the call is over.</param>
internal sealed class KeyValueWatch(
    WatchHub hub,
    WatchedKeys keys,
    WatchMessages messages,
    IServerStreamWriter<WatchKeyValuesResponse> responses,
    Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute,
    WatchAccess? access,
    CancellationToken ended)
    : WatchPump(hub, access)
{
    /// <summary>Previous values that are read at a time.</summary>
    private const int ReadsAtOnce = 8;

    private readonly WatchHub _hub = hub;
    private readonly TaskCompletionSource _over = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private bool _hasBegun;

    /// <summary>Serves the watch until the call is over.</summary>
    public async Task RunAsync()
    {
        Join();
        try
        {
            Wake();
            await _over.Task.WaitAsync(ended).ConfigureAwait(false);
        }
        finally
        {
            await EndAsync().ConfigureAwait(false);
        }
    }

    /// <inheritdoc/>
    protected override bool TakeRequests(WatchReader reader)
    {
        if (!_hasBegun)
        {
            _hasBegun = true;
            reader.Take(keys.Request());
        }

        return true;
    }

    /// <inheritdoc/>
    protected override int WriteOwn() => 0;

    /// <inheritdoc/>
    protected override void Write(ByteBuffer frame) => messages.Read(frame.Written, _hub.Now);

    /// <inheritdoc/>
    protected override async ValueTask<bool> SendAsync()
    {
        while (messages.Take() is { } message)
        {
            if (message.WithPrevious.Count > 0)
            {
                await Parallel.ForEachAsync(
                    message.WithPrevious,
                    new ParallelOptions { MaxDegreeOfParallelism = ReadsAtOnce, CancellationToken = ended },
                    async (each, ct) => each.Previous = await ReadAsync(each, ct).ConfigureAwait(false))
                    .ConfigureAwait(false);
            }

            await responses.WriteAsync(message.Response, ended).ConfigureAwait(false);
        }

        return messages.Refusal is { } refusal ? throw refusal : true;
    }

    /// <inheritdoc/>
    protected override void CancelSending()
    {
        // The end of the call does it.
    }

    /// <inheritdoc/>
    protected override void OnFailed(Exception error) => _over.TrySetException(error);

    private async Task<Value?> ReadAsync(KeyValueEvent change, CancellationToken ct)
    {
        try
        {
            byte[] answer = await execute(keys.GetAt(change.Key, change.Revision - 1), null, ct).ConfigureAwait(false);
            Outcome.TryRead(answer, out Outcome outcome);
            return outcome.Status != OutcomeStatus.Found ? null
                : outcome.ValueIsNull ? new Value()
                : new Value { Data = ByteString.CopyFrom(outcome.Value) };
        }
        catch (RpcException gone) when (gone.StatusCode == StatusCode.OutOfRange)
        {
            return null;
        }
    }
}

/// <summary>What the watch of a foreign client is about. Immutable but for its start.</summary>
/// <param name="scope">What the name is.</param>
/// <param name="name">The name.</param>
/// <param name="durability">The durability of the keys.</param>
/// <param name="withValues">With the written values.</param>
/// <param name="start">Where it begins.</param>
internal sealed class WatchedKeys(
    WatchScope scope, byte[] name, Durability durability, bool withValues, WatchStart start)
{
    /// <summary>The keys, and perhaps others: <see cref="Has"/> tells them apart.</summary>
    public KeyRange Range => scope switch
    {
        WatchScope.Key => new KeyRange(name, [.. name, 0]),
        WatchScope.Bucket => KeyRange.Of(name, null, [.. name, (byte)('/' + 1)]),
        _ => KeyRange.Of(name, null, null),
    };

    public bool WithValues => withValues;

    /// <summary>A key of the range is watched.</summary>
    public bool Has(ReadOnlySpan<byte> key) =>
        scope != WatchScope.Bucket || Wire.Routing.KeyRouting.Bucket(key).SequenceEqual(name);

    /// <summary>The request that begins the watch.</summary>
    public WatchRequest Request()
    {
        byte[] points = new byte[start.Points.Length * ChangePoint.Bytes];
        for (int i = 0; i < start.Points.Length; i++)
        {
            start.Points[i].Write(points.AsSpan(i * ChangePoint.Bytes));
        }

        return new WatchRequest
        {
            Operation = WatchOperation.Begin,
            Durability = durability,
            Scope = scope,
            Flags = withValues ? WatchFlags.WithValues : 0,
            Id = 1,
            Points = points,
            Name = name,
        };
    }

    /// <summary>A read of a key at a revision.</summary>
    public ByteBuffer GetAt(string key, long revision)
    {
        Command command = new()
        {
            Kind = CommandKind.Get,
            Durability = durability,
            Flags = CommandFlags.AtRevision,
            Key = System.Text.Encoding.UTF8.GetBytes(key),
            AtRevision = revision,
        };
        return Encode(in command);
    }

    /// <summary>A page of a partition, behind a key or from the beginning, that says what it has seen.</summary>
    public ByteBuffer Page(int partition, byte[]? behind, int limit)
    {
        KeyRange range = Range;
        RangeFlags flags = (withValues ? 0 : RangeFlags.KeysOnly) | (behind is null ? 0 : RangeFlags.AfterStart);
        return Read(partition, range with { Start = behind ?? range.Start }, flags, limit);
    }

    /// <summary>No keys, but what a partition has seen now.</summary>
    public ByteBuffer Now(int partition) => Read(partition, new KeyRange([(byte)'0'], [(byte)'0']), 0, 1);

    private ByteBuffer Read(int partition, KeyRange range, RangeFlags flags, int limit)
    {
        Command command = new()
        {
            Kind = CommandKind.KeyRange,
            Durability = durability,
            Flags = CommandFlags.Number
                | CommandFlags.AtRevision
                | CommandFlags.Positioned
                | (range.End is null ? CommandFlags.None : CommandFlags.IfValue),
            Key = range.Start,
            ComparedValue = range.End,
            Number = partition,
            AtRevision = RangeRequest.Options(limit, flags),
        };
        return Encode(in command);
    }

    private static ByteBuffer Encode(scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return buffer;
    }
}
