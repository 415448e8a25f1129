using Kahuna.Wire.Checks;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Tells that a node knows a newer map of slots, in which the keys of one command lie in several partitions. Stateless.
/// </summary>
internal static class SpreadKeys
{
    /// <summary>True when a command was refused for that reason.</summary>
    public static bool IsRefused(KahunaException error) =>
        error.Code == KahunaErrorCode.InvalidArgument
            && error.Message.Contains(TransactionCheck.DifferentPartitions, StringComparison.Ordinal);
}
