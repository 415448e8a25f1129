using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>A loop, as the meta group's publisher sees it. Any thread.</summary>
internal interface IMetaListener
{
    /// <summary>The meta group's records have changed.</summary>
    void PostMeta(MetaView view);

    /// <summary>The meta group, which this loop owns, is to record a command; takes over the buffer.</summary>
    void PostMetaAsk(ByteBuffer command);
}
