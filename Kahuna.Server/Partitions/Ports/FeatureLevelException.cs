using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The node has met a feature level that this build does not support: the node stops, and nothing of that level was
/// stored or applied (docs/adr/0032-feature-levels.md). The message is for the operator. Immutable.
/// </summary>
internal sealed class FeatureLevelException(FeatureLevel level, FeatureRange supported, string where)
    : StorageException(
        $"The cluster has feature level {level} ({where}), and this version supports {supported} only. Start this node "
            + (level > supported.Max
                ? "with a version that supports it, as the other nodes run."
                : "with an earlier version, and let that one raise the level first."))
{
    /// <summary>Throws when a level is not supported.</summary>
    /// <param name="level">The level that was met.</param>
    /// <param name="limits">Name what this build supports.</param>
    /// <param name="where">Where it was met, in a few words.</param>
    public static void Require(FeatureLevel level, StateLimits limits, string where)
    {
        if (!limits.Features.Contains(level))
        {
            throw new FeatureLevelException(level, limits.Features, where);
        }
    }
}
