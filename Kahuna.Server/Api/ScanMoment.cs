using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// The moment that a consistent scan of a foreign client shows: a cut in each partition, opened and confirmed as the
/// SDK does it (docs/adr/0036-consistent-scans.md). Owned by one call; partitions are asked concurrently.
/// </summary>
/// <param name="execute">Executes a command.</param>
/// <param name="call">What the call takes up.</param>
/// <param name="partitions">Number of partitions.</param>
/// <param name="durability">The durability of the keys.</param>
internal sealed class ScanMoment(
    Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute,
    ScanCall call,
    int partitions,
    Durability durability)
{
    /// <summary>Tries to open the cuts at one moment.</summary>
    private const int TriesMax = 10;

    /// <summary>The pause after the first try; each further one is longer by as much.</summary>
    private const int PauseMs = 10;

    private static readonly TimeSpan s_endTime = TimeSpan.FromSeconds(5);

    private readonly long[] _cuts = new long[partitions];
    private readonly long[] _restMs = new long[partitions];
    private readonly bool[] _isBusy = new bool[partitions];
    private KeyRange _range = KeyRange.Of([], null, null);
    private RangeFlags _flags;

    /// <summary>The number of the open cut of a partition.</summary>
    public long this[int partition] => _cuts[partition];

    /// <summary>Opens the cuts.</summary>
    /// <exception cref="RpcException">ABORTED: the range changes too fast. Others: a partition could not be asked.
    /// </exception>
    public async Task OpenAsync(KeyRange range, bool keysOnly, CancellationToken ct)
    {
        _range = range;
        _flags = keysOnly ? RangeFlags.KeysOnly : RangeFlags.None;
        for (int tries = 1; ; tries++)
        {
            await call.EachAsync(
                Enumerable.Range(0, partitions).Where(partition => _cuts[partition] == 0),
                OpenAsync).ConfigureAwait(false);
            if (partitions == 1)
            {
                return;
            }

            bool[] areCurrent = new bool[partitions];
            await call.EachAsync(
                Enumerable.Range(0, partitions),
                async (partition, end) => areCurrent[partition] = await IsCurrentAsync(partition, end)
                    .ConfigureAwait(false)).ConfigureAwait(false);
            if (Array.TrueForAll(areCurrent, static isCurrent => isCurrent))
            {
                return;
            }

            if (tries == TriesMax)
            {
                throw OutcomeErrors.Build(
                    StatusCode.Aborted,
                    $"The range changed in each of {tries} tries to find a moment for all partitions; nothing was "
                        + "read. Try again, or scan a smaller range.",
                    OutcomeErrors.DidNotHappen);
            }

            // A range that has changed once is likely to change again, so its cut is opened anew in each further try.
            long pauseMs = PauseMs * tries;
            for (int i = 0; i < partitions; i++)
            {
                _isBusy[i] |= !areCurrent[i];
                pauseMs = Math.Max(pauseMs, _isBusy[i] ? _restMs[i] : 0);
            }

            End(onlyBusy: true);
            await Task.Delay(TimeSpan.FromMilliseconds(pauseMs), ct).ConfigureAwait(false);
        }
    }

    /// <summary>Ends all cuts. Nobody waits for it: a cut that is not ended here ends by itself.</summary>
    public void End() => End(onlyBusy: false);

    private void End(bool onlyBusy)
    {
        for (int i = 0; i < partitions; i++)
        {
            if (_cuts[i] != 0 && (_isBusy[i] || !onlyBusy))
            {
                _ = EndAsync(Encode(CommandKind.CutEnd, i, _flags, _cuts[i]));
                _cuts[i] = 0;
            }
        }
    }

    private async Task EndAsync(ByteBuffer command)
    {
        try
        {
            await execute(command, s_endTime, CancellationToken.None).ConfigureAwait(false);
        }
        catch (RpcException)
        {
            // The cut ends by itself.
        }
    }

    private async Task OpenAsync(int partition, CancellationToken ct)
    {
        RangeFlags flags = partitions > 1 ? _flags | RangeFlags.Hold : _flags;
        byte[] answer = await execute(Encode(CommandKind.CutOpen, partition, flags, 0), call.TimeLeft, ct)
            .ConfigureAwait(false);
        Outcome.TryRead(answer, out Outcome outcome);
        (_cuts[partition], _restMs[partition]) = (outcome.Number, outcome.Revision);
    }

    private async Task<bool> IsCurrentAsync(int partition, CancellationToken ct)
    {
        try
        {
            byte[] answer = await execute(
                Encode(CommandKind.CutConfirm, partition, _flags, _cuts[partition]), call.TimeLeft, ct)
                .ConfigureAwait(false);
            return (OutcomeStatus)answer[0] == OutcomeStatus.Found;
        }
        catch (RpcException expired) when (expired.StatusCode == StatusCode.Aborted)
        {
            return false;
        }
    }

    private ByteBuffer Encode(CommandKind kind, int partition, RangeFlags flags, long cut)
    {
        Command command = new()
        {
            Kind = kind,
            Durability = durability,
            Flags = CommandFlags.Number
                | CommandFlags.AtRevision
                | (_range.End is null ? CommandFlags.None : CommandFlags.IfValue)
                | (cut == 0 ? CommandFlags.None : CommandFlags.IfRevision),
            Key = _range.Start,
            ComparedValue = _range.End,
            ComparedRevision = cut,
            Number = partition,
            AtRevision = RangeRequest.Options(1, flags),
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return buffer;
    }
}
