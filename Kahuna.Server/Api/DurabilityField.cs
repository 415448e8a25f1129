using Grpc.Core;
using Kahuna.Server.Api.Errors;

namespace Kahuna.Server.Api;

/// <summary>Converts the durability of a unary call for a command. Stateless.</summary>
internal static class DurabilityField
{
    /// <summary>
    /// Converts the value if it fits into one byte. The command's own check refuses missing and unknown values.
    /// </summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the value does not fit into a command.</exception>
    public static Durability Read(Protos.Durability durability) =>
        durability is >= 0 and <= (Protos.Durability)byte.MaxValue
        ? (Durability)durability
        : throw OutcomeErrors.Build(
            StatusCode.InvalidArgument, $"durability {(int)durability} is unknown.", OutcomeErrors.DidNotHappen);
}
