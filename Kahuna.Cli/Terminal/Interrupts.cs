namespace Kahuna.Cli.Terminal;

/// <summary>
/// What a signal ends: the process, or the command of a line that a shell carries out. Any thread; one per process.
/// </summary>
internal sealed class Interrupts : IDisposable
{
    private readonly CancellationTokenSource _process = new();
    private volatile CancellationTokenSource? _line;

    /// <summary>Cancelled when the process has to end.</summary>
    public CancellationToken Process => _process.Token;

    /// <summary>Ctrl+C: ends the command. False: it was told already, and the system may end the process.</summary>
    public bool Interrupt() => Cancel(_line ?? _process);

    /// <summary>Ends the process, and the command in it.</summary>
    /// <inheritdoc cref="Interrupt"/>
    public bool Terminate() => Cancel(_process);

    /// <summary>Begins a command that Ctrl+C ends alone; disposing the source ends that.</summary>
    public LineStop BeginLine() => new(this);

    /// <inheritdoc/>
    public void Dispose() => _process.Dispose();

    private static bool Cancel(CancellationTokenSource source)
    {
        try
        {
            if (source.IsCancellationRequested)
            {
                return false;
            }

            source.Cancel();
        }
        catch (ObjectDisposedException)
        {
            // The command has ended at this moment.
        }

        return true;
    }

    /// <summary>The time of one command. Disposed by the shell that carries it out.</summary>
    internal sealed class LineStop : IDisposable
    {
        private readonly Interrupts _owner;
        private readonly CancellationTokenSource _source;

        public LineStop(Interrupts owner)
        {
            _owner = owner;
            _source = CancellationTokenSource.CreateLinkedTokenSource(owner.Process);
            owner._line = _source;
        }

        /// <summary>Cancelled by Ctrl+C, and when the process has to end.</summary>
        public CancellationToken Token => _source.Token;

        public void Dispose()
        {
            _owner._line = null;
            _source.Dispose();
        }
    }
}
