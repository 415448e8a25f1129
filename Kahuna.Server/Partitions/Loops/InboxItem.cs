using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>What can lie in a loop's inbox.</summary>
internal enum InboxKind : byte
{
    None,

    /// <summary>Operations of a client: <see cref="InboxItem.Batch"/>.</summary>
    Client,

    /// <summary>A frame from a peer: <see cref="InboxItem.Buffer"/>, <see cref="InboxItem.Node"/>.</summary>
    Peer,

    /// <summary>The log holds batch <see cref="InboxItem.Number"/>.</summary>
    Persisted,

    /// <summary>
    /// Entries for a lagging follower: <see cref="InboxItem.Buffer"/> from index <see cref="InboxItem.Number"/>.
    /// </summary>
    Fetched,

    /// <summary>The link to <see cref="InboxItem.Node"/> went down.</summary>
    LinkDown,

    /// <summary>The member <see cref="InboxItem.Node"/> came back without what it had.</summary>
    MemberReplaced,

    /// <summary>The node may vote.</summary>
    AllowVoting,

    /// <summary>The checkpoint service asks or tells: <see cref="InboxItem.Request"/>.</summary>
    Checkpoint,

    /// <summary>The meta group's records have changed: <see cref="InboxItem.View"/>.</summary>
    Meta,

    /// <summary>The meta group is to record something: <see cref="InboxItem.Buffer"/>.</summary>
    MetaAsk,

    /// <summary>Answers of <see cref="InboxItem.Sink"/> have left, for which reads wait.</summary>
    Room,

    /// <summary>Stop accepting, hand leadership over.</summary>
    Drain,

    /// <summary>Answer what is left with "unknown" and end.</summary>
    Close,
}

/// <summary>One item of a loop's inbox: a flat struct, which fields count depends on the kind.</summary>
internal struct InboxItem
{
    public InboxKind Kind;
    public NodeId Node;
    public GroupId Group;
    public ulong Number;
    public ClientBatch? Batch;
    public ByteBuffer? Buffer;
    public CheckpointRequest? Request;
    public MetaView? View;
    public ReplySink? Sink;
}
