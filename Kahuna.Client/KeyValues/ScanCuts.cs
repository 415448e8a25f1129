using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// The cuts of a consistent scan, one in each partition, opened so that all of them show one moment
/// (docs/adr/0036-consistent-scans.md). Owned by one call; not thread-safe.
/// </summary>
internal sealed class ScanCuts
{
    /// <summary>
    /// Tries to open the cuts at one moment: half a second of pauses in all. A range that changes all the time and lies
    /// in partitions that are far away needs more tries than a caller would wait for.
    /// </summary>
    private const int TriesMax = 10;

    /// <summary>The pause after the first try; each further one is longer by as much.</summary>
    private const int PauseMs = 10;

    /// <summary>The longest pause, whatever a server says.</summary>
    private const int PauseMsMax = 1_000;

    private readonly ClusterConnection _connection;
    private readonly Durability _durability;
    private readonly KeyRange _range;
    private readonly RangeFlags _flags;
    private readonly Cut[] _cuts;

    public ScanCuts(
        ClusterConnection connection, Durability durability, int partitions, KeyRange range, RangeFlags flags)
    {
        _connection = connection;
        _durability = durability;
        _range = range;
        _flags = flags & RangeFlags.KeysOnly;
        _cuts = [.. Enumerable.Range(0, partitions).Select(static partition => new Cut(partition))];
    }

    /// <summary>The number of the open cut of a partition.</summary>
    public long this[int partition] => _cuts[partition].Number;

    /// <summary>
    /// Opens the cuts. Each is confirmed after all were opened: if no range has changed by then, there was a moment at
    /// which all cuts were the state. Otherwise the cuts that have changed are opened again.
    /// </summary>
    /// <exception cref="KahunaException">A partition could not be asked, or the range changes too fast.</exception>
    public async Task OpenAsync(CancellationToken ct)
    {
        bool captures = _connection.CapturesContext;
        for (int tries = 1; ; tries++)
        {
            await Task.WhenAll(_cuts.Where(static cut => cut.Number == 0).Select(cut => OpenAsync(cut, ct)))
                .ConfigureAwait(captures);
            if (_cuts.Length == 1)
            {
                return;
            }

            bool[] areCurrent = await Task.WhenAll(_cuts.Select(cut => IsCurrentAsync(cut, ct)))
                .ConfigureAwait(captures);
            if (Array.TrueForAll(areCurrent, static isCurrent => isCurrent))
            {
                return;
            }

            if (tries == TriesMax)
            {
                throw OperationErrors.RangeTooBusy(tries);
            }

            // A range that has changed once is likely to change again, so its cut is opened anew in each further try:
            // all such partitions stand still at the same time then.
            long pauseMs = PauseMs * tries;
            for (int i = 0; i < _cuts.Length; i++)
            {
                _cuts[i].IsBusy |= !areCurrent[i];
                pauseMs = Math.Max(pauseMs, _cuts[i].IsBusy ? _cuts[i].RestMs : 0);
            }

            End(static cut => cut.IsBusy);
            await PauseAsync(pauseMs, ct).ConfigureAwait(captures);
        }
    }

    private async Task PauseAsync(long ms, CancellationToken ct)
    {
        try
        {
            await Task.Delay(TimeSpan.FromMilliseconds(Math.Min(ms, PauseMsMax)), _connection.Time, ct)
                .ConfigureAwait(_connection.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <summary>Ends all cuts. Nobody waits for it: a cut that is not ended here ends by itself.</summary>
    public void End() => End(static _ => true);

    private void End(Func<Cut, bool> ends)
    {
        foreach (Cut cut in _cuts)
        {
            if (cut.Number != 0 && ends(cut))
            {
                _ = EndAsync(cut.Partition, cut.Number);
                cut.Number = 0;
            }
        }
    }

    private async Task OpenAsync(Cut cut, CancellationToken ct)
    {
        RangeFlags flags = _cuts.Length > 1 ? _flags | RangeFlags.Hold : _flags;
        CutReply opened = await _connection.Run(Begin(CommandKind.CutOpen, cut.Partition, flags), ct)
            .ConfigureAwait(_connection.CapturesContext);
        cut.Number = opened.Number;
        cut.RestMs = opened.RestMs;
    }

    private async Task<bool> IsCurrentAsync(Cut cut, CancellationToken ct)
    {
        Operation<CutReply> operation = Begin(CommandKind.CutConfirm, cut.Partition, _flags);
        operation.Request.SetCut(cut.Number);
        try
        {
            CutReply reply = await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
            return reply.IsCurrent;
        }
        catch (KahunaException expired) when (expired.Code == KahunaErrorCode.ScanExpired)
        {
            return false;
        }
    }

    private async Task EndAsync(int partition, long number)
    {
        Operation<CutReply> operation = Begin(CommandKind.CutEnd, partition, _flags);
        operation.Request.SetCut(number);
        try
        {
            await _connection.Run(operation, CancellationToken.None).ConfigureAwait(_connection.CapturesContext);
        }
        catch (KahunaException)
        {
            // The cut ends by itself.
        }
    }

    private Operation<CutReply> Begin(CommandKind kind, int partition, RangeFlags flags)
    {
        Operation<CutReply> operation = Operation<CutReply>.Rent();
        operation.Request.Begin(kind, _durability, Encoding.UTF8.GetString(_range.Start));
        operation.Request.SetRange(partition, _range.End, RangeRequest.Options(1, flags));
        return operation;
    }

    /// <summary>The cut of a partition.</summary>
    private sealed class Cut(int partition)
    {
        public int Partition => partition;

        /// <summary>Its number; 0: it is not open.</summary>
        public long Number { get; set; }

        /// <summary>The leader will not hold its proposals for this many ms.</summary>
        public long RestMs { get; set; }

        /// <summary>The range has changed between the opening and the confirmation of a cut.</summary>
        public bool IsBusy { get; set; }
    }
}
