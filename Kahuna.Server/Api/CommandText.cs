using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Client.Wire;

namespace Kahuna.Server.Api;

/// <summary>Text of a unary call as commands have it. Stateless.</summary>
internal static class CommandText
{
    /// <summary>The bytes of a key or a name. Whether the partition takes one of that length is checked with the command; here, that a command can hold it.</summary>
    /// <param name="field">What the message calls it.</param>
    /// <param name="text">The text.</param>
    /// <exception cref="RpcException">INVALID_ARGUMENT: it is longer than a command can say.</exception>
    public static byte[] Encode(string field, string text)
    {
        int bytes = Encoding.UTF8.GetByteCount(text);
        return bytes <= ushort.MaxValue
            ? Encoding.UTF8.GetBytes(text)
            : throw OutcomeErrors.Build(
                StatusCode.InvalidArgument,
                string.Create(CultureInfo.InvariantCulture, $"{field} is {bytes:N0} bytes; the limit is {Limits.KeyBytesMax:N0}."),
                OutcomeErrors.DidNotHappen);
    }
}
