using System.Buffers;
using System.Buffers.Text;
using System.Text;
using Grpc.Core;

namespace Kahuna.Server.Api;

/// <summary>Cuts a sorted list into pages. A page's token is the name of the last item before it.</summary>
internal static class NamePage
{
    /// <summary>Items of a page by default.</summary>
    public const int SizeDefault = 100;

    /// <summary>The most items of a page.</summary>
    public const int SizeMax = 1_000;

    /// <summary>A page.</summary>
    /// <param name="all">All items, in the order of their names.</param>
    /// <param name="nameOf">An item's name.</param>
    /// <param name="size">Items of the page; 0: <see cref="SizeDefault"/>.</param>
    /// <param name="token">From the page before; empty: the first page.</param>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the size is out of range, or the token is none.</exception>
    public static NamePage<T> Of<T>(IReadOnlyList<T> all, Func<T, string> nameOf, int size, string token)
    {
        if (size is < 0 or > SizeMax)
        {
            throw AccessMessages.Invalid(
                FormattableString.Invariant($"page_size is {size}; it must be 0 to {SizeMax:N0}."));
        }

        string after = Decode(token);
        List<T> items =
        [
            .. all.SkipWhile(item => token.Length > 0 && string.CompareOrdinal(nameOf(item), after) <= 0)
                .Take((size == 0 ? SizeDefault : size) + 1),
        ];
        bool hasMore = items.Count > (size == 0 ? SizeDefault : size);
        if (hasMore)
        {
            items.RemoveAt(items.Count - 1);
        }

        return new NamePage<T>(
            items, hasMore ? Base64Url.EncodeToString(Encoding.UTF8.GetBytes(nameOf(items[^1]))) : "");
    }

    private static string Decode(string token)
    {
        byte[] name = new byte[Base64Url.GetMaxDecodedLength(token.Length)];
        return Base64Url.DecodeFromChars(token, name, out _, out int written) == OperationStatus.Done
            ? Encoding.UTF8.GetString(name.AsSpan(0, written))
            : throw AccessMessages.Invalid("page_token did not come from a server.");
    }
}

/// <summary>A page of a list. Immutable.</summary>
/// <param name="Items">Its items.</param>
/// <param name="Next">The token of the page behind it; empty: there is none.</param>
internal sealed record NamePage<T>(IReadOnlyList<T> Items, string Next);
