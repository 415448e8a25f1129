namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>The node ends in the middle of what it does: its power fails, or its process is killed.</summary>
internal sealed class SimCrashException(bool power) : Exception(Text)
{
    /// <summary>Why a node did not start that ended so.</summary>
    public const string Text = "the node ended";

    /// <summary>Whether what was not synced is gone, too.</summary>
    public bool Power { get; } = power;
}
