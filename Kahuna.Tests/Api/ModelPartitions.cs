using System.Globalization;
using Kahuna.Server.Primitives;
using Kahuna.Tests.State;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Api;

/// <summary>
/// Keys in the states of a few partitions, the first half of them in one, and their pages as a node would answer them.
/// Any thread.
/// </summary>
internal sealed class ModelPartitions
{
    private readonly StateDriver[] _states;
    private int _reading;
    private int _pages;

    public ModelPartitions(int partitions, int keys, int valueBytes)
    {
        _states = [.. Enumerable.Range(0, partitions).Select(static _ => new StateDriver())];
        Keys =
        [
            .. Enumerable.Range(0, keys).Select(
                static i => string.Create(CultureInfo.InvariantCulture, $"key {i:000000}")),
        ];
        for (int i = 0; i < keys; i++)
        {
            _states[i < keys / 2 ? 0 : i % partitions].Set(Keys[i], new string('v', valueBytes));
        }
    }

    public string[] Keys { get; }

    /// <summary>Pages that were read at the same time, at the most.</summary>
    public int ReadingMax { get; private set; }

    /// <summary>Pages read so far.</summary>
    public int Pages => Volatile.Read(ref _pages);

    /// <summary>Runs before a page is read, with its number.</summary>
    public Func<int, CancellationToken, Task>? Before { get; set; }

    public async Task<byte[]> ExecuteAsync(ByteBuffer bytes, TimeSpan? timeLeft, CancellationToken ct)
    {
        byte[] command = bytes.Written.ToArray();
        bytes.Return();
        int reading = Interlocked.Increment(ref _reading);
        try
        {
            lock (_states)
            {
                ReadingMax = Math.Max(ReadingMax, reading);
            }

            int page = Interlocked.Increment(ref _pages);
            if (Before is { } before)
            {
                await before(page, ct);
            }

            return Read(command);
        }
        finally
        {
            Interlocked.Decrement(ref _reading);
        }
    }

    private byte[] Read(byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        StateDriver state = _states[command.Number];
        ByteBuffer outcome = ByteBuffer.Rent();
        lock (_states)
        {
            state.Machine.Read(in command, new ClusterTime(state.Now), outcome);
        }

        Assert.Equal(OutcomeStatus.Found, (OutcomeStatus)outcome.Written[0]);
        byte[] page = outcome.Written.ToArray();
        outcome.Return();
        return page;
    }
}
