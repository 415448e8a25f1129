namespace Kahuna.Server.Cluster;

/// <summary>Sends a command to whichever node leads its partition. Any thread.</summary>
internal interface IForwarder
{
    /// <summary>
    /// The bytes of the outcome. A command that surely did not happen is tried again until <paramref name="cancellationToken"/> ends; what may have happened
    /// ends with the status Unknown.
    /// </summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="mayHaveHappened">An earlier attempt may have been carried out; the command has a number that makes a further one harmless.</param>
    /// <param name="timeLeft">How long it may wait to be begun.</param>
    /// <param name="cancellationToken">Ends the attempts.</param>
    Task<byte[]> ForwardAsync(ReadOnlyMemory<byte> command, bool mayHaveHappened, TimeSpan timeLeft, CancellationToken cancellationToken);
}
