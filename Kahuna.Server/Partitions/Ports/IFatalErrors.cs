namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: ends the process after an exception that nobody expected. State, log and answers may disagree from then on, so
/// nothing that depends on them may continue. A broken invariant of one partition is not reported here: it stops that
/// partition only. Any thread.
/// </summary>
internal interface IFatalErrors
{
    /// <summary>
    /// Ends the process with exit code 1 and states the reason. It returns, or throws, only in tests and simulations;
    /// the caller then does nothing more.
    /// </summary>
    /// <param name="where">What was under way, as the second half of "unexpected error in …".</param>
    /// <param name="error">The exception.</param>
    void Raise(string where, Exception error);
}
