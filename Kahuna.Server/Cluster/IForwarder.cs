namespace Kahuna.Server.Cluster;

/// <summary>Sends a command to the leader of its partition. Any thread.</summary>
internal interface IForwarder
{
    /// <summary>
    /// Forwards a command and returns the bytes of its outcome. Retries until <paramref name="cancellationToken"/> is
    /// cancelled if the command did not happen; ends with the status Unknown if it may have happened.
    /// </summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="mayHaveHappened">Whether an earlier attempt may have been applied. The command's number makes a
    /// further attempt harmless.</param>
    /// <param name="timeLeft">Longest wait until the command starts.</param>
    /// <param name="cancellationToken">Ends the attempts.</param>
    Task<byte[]> ForwardAsync(
        ReadOnlyMemory<byte> command, bool mayHaveHappened, TimeSpan timeLeft, CancellationToken cancellationToken);
}
