namespace Kahuna.Server.Cluster;

/// <summary>Sends a command to whichever node leads its partition. Any thread.</summary>
internal interface IForwarder
{
    /// <summary>
    /// The bytes of the outcome. A command that surely did not happen is tried again until <paramref name="cancellationToken"/> ends; what may have happened
    /// ends with the status Unknown.
    /// </summary>
    Task<byte[]> ForwardAsync(ReadOnlyMemory<byte> command, CancellationToken cancellationToken);
}
