namespace Kahuna.Server.Partitions.Ports;

/// <summary>A loop as a client's sink sees it: it keeps reads back until answers have left. Any thread.</summary>
internal interface IRoomListener
{
    /// <summary>Number of the loop on its node.</summary>
    int Number { get; }

    /// <summary>Answers of a client have left, or the client has, and this loop wanted to hear of it.</summary>
    void PostRoom(ReplySink sink);
}
