namespace Kahuna.Client.Wire.Frames;

/// <summary>What a frame of the Exchange stream carries. Values are part of the wire format.</summary>
internal enum FrameKind : byte
{
    /// <summary>First frame of each side: the client's wire version; the server answers with its own and then a <see cref="Map"/>.</summary>
    Hello = 1,

    /// <summary>Client to server: commands.</summary>
    Requests = 2,

    /// <summary>Server to client: outcomes, in any order.</summary>
    Replies = 3,

    /// <summary>Server to client: a serialized DescribeClusterResponse, at the start and after each change of a leader.</summary>
    Map = 4,

    /// <summary>Server to client: the node stops; send nothing new, what is in flight is still answered.</summary>
    GoAway = 5,
}
