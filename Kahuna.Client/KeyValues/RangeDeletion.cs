using System.Globalization;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>Deletes a range step by step. Owned by one call; not thread-safe.</summary>
internal sealed class RangeDeletion
{
    private readonly ClusterConnection _connection;
    private readonly Durability _durability;
    private readonly KeyRange _range;
    private readonly bool _isWithoutHistory;
    private long _deleted;

    public RangeDeletion(
        ClusterConnection connection, Durability durability, string prefix, DeleteByPrefixOptions options)
    {
        if (prefix.Length == 0 && options is { From: null, To: null, AllKeys: false })
        {
            throw OperationErrors.BadArgument(
                "the prefix is empty and would delete every key; set AllKeys if that is meant");
        }

        _connection = connection;
        _durability = durability;
        _range = RangeBounds.Of(prefix, options.From, options.To);
        _isWithoutHistory = options.WithoutHistory;
    }

    /// <summary>Deletes the keys of all partitions. Returns how many.</summary>
    public async Task<long> RunAsync(int partitions, IProgress<long>? progress, CancellationToken ct)
    {
        try
        {
            for (int partition = 0; partition < partitions; partition++)
            {
                await DeleteInAsync(partition, progress, ct).ConfigureAwait(_connection.CapturesContext);
            }
        }
        catch (KahunaException error) when (_deleted > 0)
        {
            throw new KahunaException(
                error.Code,
                OperationOutcome.Unknown,
                string.Create(
                    CultureInfo.InvariantCulture,
                    $"{error.Message} {_deleted:N0} keys were deleted before; call again to delete the rest."),
                error);
        }
        catch (KahunaCanceledException) when (_deleted > 0)
        {
            throw new KahunaCanceledException(OperationOutcome.Unknown, ct);
        }

        return _deleted;
    }

    private async Task DeleteInAsync(int partition, IProgress<long>? progress, CancellationToken ct)
    {
        byte[]? last = null;
        do
        {
            RangeDeleteReply step = await _connection.Run(Step(partition, last), ct)
                .ConfigureAwait(_connection.CapturesContext);
            last = step.Last;
            _deleted += step.Deleted;
            if (step.Deleted > 0)
            {
                progress?.Report(_deleted);
            }
        }
        while (last is not null);
    }

    private Operation<RangeDeleteReply> Step(int partition, byte[]? last)
    {
        Operation<RangeDeleteReply> operation = Operation<RangeDeleteReply>.Rent();
        operation.Request.Begin(
            CommandKind.KeyRangeDelete, _durability, Encoding.UTF8.GetString(last ?? _range.Start));
        operation.Request.SetRange(
            partition,
            _range.End,
            RangeRequest.Options(
                Limits.RangeKeysMax, last is null ? RangeFlags.None : RangeFlags.AfterStart));
        operation.Request.AddFlag(CommandFlags.WithoutHistory, _isWithoutHistory);
        return operation;
    }
}
