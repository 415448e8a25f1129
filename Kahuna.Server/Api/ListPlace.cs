using System.Globalization;
using Grpc.Core;

namespace Kahuna.Server.Api;

/// <summary>Where a list goes on: pages go through one partition after the other. Its text is the page token of the unary calls. A value.</summary>
/// <param name="Partition">The partition.</param>
/// <param name="Row">The place within it; 0: at its beginning.</param>
internal readonly record struct ListPlace(int Partition, long Row)
{
    /// <summary>The place that a token names; the empty one is the beginning.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: no server gave this token.</exception>
    public static ListPlace Read(string token, int partitions)
    {
        if (token.Length == 0)
        {
            return default;
        }

        string[] parts = token.Split(':');
        return parts.Length == 2
            && int.TryParse(parts[0], NumberStyles.None, CultureInfo.InvariantCulture, out int partition) && partition < partitions
            && long.TryParse(parts[1], NumberStyles.None, CultureInfo.InvariantCulture, out long row)
            ? new ListPlace(partition, row)
            : throw OutcomeErrors.Build(StatusCode.InvalidArgument, "page_token is none that a server gave.", OutcomeErrors.DidNotHappen);
    }

    /// <summary>The token of the next page; empty when there is none.</summary>
    /// <param name="row">The place that the partition answered; 0: it has no more.</param>
    /// <param name="partitions">Number of partitions.</param>
    public string TokenOfNext(long row, int partitions)
    {
        ListPlace next = row == 0 ? new ListPlace(Partition + 1, 0) : this with { Row = row };
        return next.Partition < partitions ? string.Create(CultureInfo.InvariantCulture, $"{next.Partition}:{next.Row}") : "";
    }
}
