namespace Kahuna.Server.Hosting.Options;

/// <summary>How a leader makes sure that it still leads before it answers a read.</summary>
internal enum ReadConfirmation
{
    /// <summary>It asks a majority, once for all reads that wait. The default.</summary>
    Round,

    /// <summary>
    /// It relies on a majority's promise to elect no other leader for a while. Needs clocks that run about equally
    /// fast.
    /// </summary>
    Lease,
}
