using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire;

namespace Kahuna.Server.Api;

/// <summary>Encodes the text fields of a unary call for a command. Stateless.</summary>
internal static class CommandText
{
    /// <summary>
    /// Encodes a key or a name in UTF-8. Checks only that the length fits the command's field; the command's own check
    /// applies the real limit.
    /// </summary>
    /// <param name="field">Name of the field in the message.</param>
    /// <param name="text">The text.</param>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the text does not fit into a command.</exception>
    public static byte[] Encode(string field, string text)
    {
        int bytes = Encoding.UTF8.GetByteCount(text);
        return bytes <= ushort.MaxValue
            ? Encoding.UTF8.GetBytes(text)
            : throw OutcomeErrors.Build(
                StatusCode.InvalidArgument,
                string.Create(
                    CultureInfo.InvariantCulture,
                    $"{field} is {bytes:N0} bytes; the limit is {Limits.KeyBytesMax:N0}."),
                OutcomeErrors.DidNotHappen);
    }
}
