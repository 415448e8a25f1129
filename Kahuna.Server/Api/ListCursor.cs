using System.Globalization;
using Grpc.Core;
using Kahuna.Server.Api.Errors;

namespace Kahuna.Server.Api;

/// <summary>
/// The position of a paged list, which reads one partition after another. Its text form is the page token of unary
/// calls. A value.
/// </summary>
/// <param name="Partition">The partition.</param>
/// <param name="Row">The cursor within the partition; 0: its start.</param>
internal readonly record struct ListCursor(int Partition, long Row)
{
    /// <summary>Parses a page token; an empty token is the start.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the token does not come from a server.</exception>
    public static ListCursor Read(string token, int partitions)
    {
        if (token.Length == 0)
        {
            return default;
        }

        string[] parts = token.Split(':');
        return parts.Length == 2
            && int.TryParse(parts[0], NumberStyles.None, CultureInfo.InvariantCulture, out int partition)
                && partition < partitions
            && long.TryParse(parts[1], NumberStyles.None, CultureInfo.InvariantCulture, out long row)
            ? new ListCursor(partition, row)
            : throw OutcomeErrors.Build(
                StatusCode.InvalidArgument, "page_token does not come from a server.", OutcomeErrors.DidNotHappen);
    }

    /// <summary>The token of the next page; empty after the last page.</summary>
    /// <param name="row">The cursor that the partition returned; 0: it has no more rows.</param>
    /// <param name="partitions">Number of partitions.</param>
    public string NextToken(long row, int partitions)
    {
        ListCursor next = row == 0 ? new ListCursor(Partition + 1, 0) : this with { Row = row };
        return next.Partition < partitions
            ? string.Create(CultureInfo.InvariantCulture, $"{next.Partition}:{next.Row}")
            : "";
    }
}
