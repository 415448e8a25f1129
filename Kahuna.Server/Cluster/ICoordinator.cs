using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.Cluster;

/// <summary>Runs what needs the leaders of several partitions, or of both durabilities. Any thread.</summary>
internal interface ICoordinator
{
    /// <summary>
    /// Runs a transaction and returns the bytes of its outcome, as of a transaction in one partition.
    /// </summary>
    /// <param name="command">The encoded command of a transaction; not of a session.</param>
    /// <param name="timeLeft">How long the caller waits; null: as long as a request may take.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="OperationCanceledException">The caller no longer waits.</exception>
    Task<byte[]> CommitAsync(ReadOnlyMemory<byte> command, TimeSpan? timeLeft, CancellationToken ct);

    /// <summary>Reads keys at one moment and returns the bytes of the outcome, as of one partition.</summary>
    /// <param name="items">The reads as a <see cref="Wire.Commands.CommandList"/>.</param>
    /// <param name="timeLeft">How long the caller waits; null: as long as a request may take.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="OperationCanceledException">The caller no longer waits.</exception>
    Task<byte[]> ReadAsync(ReadOnlyMemory<byte> items, TimeSpan? timeLeft, CancellationToken ct);

    /// <summary>Runs a script as a transaction and returns the bytes of its outcome, as of one partition.</summary>
    /// <param name="program">The script.</param>
    /// <param name="parameters">The values of its parameters.</param>
    /// <param name="timeLeft">How long the caller waits; null: as long as a request may take.</param>
    /// <param name="caller">For whom it runs.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="OperationCanceledException">The caller no longer waits.</exception>
    Task<byte[]> RunScriptAsync(
        ScriptProgram program,
        IReadOnlyList<ScriptParameter> parameters,
        TimeSpan? timeLeft,
        ScriptCaller caller,
        CancellationToken ct);
}

/// <summary>For whom a script runs. A value.</summary>
/// <param name="Refuse">Why a command of the script's may not be sent; null: all may.</param>
/// <param name="Account">Whose account its writes are charged to; 0 for nobody's.</param>
internal readonly record struct ScriptCaller(CommandRefusal? Refuse, ushort Account);

/// <summary>Why a command may not be sent, with the status; null: it may.</summary>
/// <param name="command">Its kind, durability, key and value count.</param>
/// <param name="status">The status of the refusal.</param>
internal delegate string? CommandRefusal(scoped in Command command, out OutcomeStatus status);
