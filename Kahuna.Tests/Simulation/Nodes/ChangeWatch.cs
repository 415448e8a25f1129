using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// Tells whether a node's groups may have changed since the rules looked at them: they change in turns, and with them
/// what the log was told of them and what it has synced. Most steps of a run are neither. Owned by its node.
/// </summary>
internal sealed class ChangeWatch
{
    private LoopSet? _loops;
    private long _turns;
    private long _log;
    private bool _isInTurn;

    /// <summary>Runs a turn.</summary>
    public void Run(ITurns loop)
    {
        _isInTurn = true;
        try
        {
            loop.RunTurns(1);
        }
        finally
        {
            _isInTurn = false;
        }
    }

    /// <summary>
    /// Something may be new since it was asked before, or a turn is under way, in which everything may be.
    /// </summary>
    public bool IsNew(LoopSet loops, LogWitness log)
    {
        if (_isInTurn)
        {
            return true;
        }

        long turns = 0;
        foreach (PartitionLoop loop in loops.Loops)
        {
            turns += loop.Turns;
        }

        if (_loops == loops && _turns == turns && _log == log.Version)
        {
            return false;
        }

        (_loops, _turns, _log) = (loops, turns, log.Version);
        return true;
    }
}
