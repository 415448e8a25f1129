namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>The node's power fails in the middle of what it does.</summary>
internal sealed class SimCrashException() : Exception("the power failed");
