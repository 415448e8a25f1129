using System.Buffers;
using System.Buffers.Binary;
using System.Buffers.Text;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Api;

/// <summary>
/// Where the next page of a query begins, in text that a caller hands back: the hash of query and position, then the
/// position, in base64url. Stateless, any thread.
/// </summary>
internal static class PageToken
{
    /// <summary>The token of a position in a query, which is a hash of all that makes it up.</summary>
    public static string Write(byte[] position, ulong query)
    {
        byte[] token = new byte[sizeof(ulong) + position.Length];
        BinaryPrimitives.WriteUInt64LittleEndian(token, XxHash64.Hash(position, query));
        position.CopyTo(token.AsSpan(sizeof(ulong)));
        return Base64Url.EncodeToString(token);
    }

    /// <summary>The position; empty for the first page.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the token is of another query, or of no server.</exception>
    public static byte[] Read(string text, ulong query)
    {
        if (text.Length == 0)
        {
            return [];
        }

        byte[] token = new byte[text.Length];
        return Base64Url.DecodeFromChars(text, token, out _, out int length) == OperationStatus.Done
            && length > sizeof(ulong)
            && BinaryPrimitives.ReadUInt64LittleEndian(token)
                == XxHash64.Hash(token.AsSpan(sizeof(ulong), length - sizeof(ulong)), query)
            ? token[sizeof(ulong)..length]
            : throw OutcomeErrors.Build(
                StatusCode.InvalidArgument,
                "page_token is not of this query; begin without one.",
                OutcomeErrors.DidNotHappen);
    }
}
