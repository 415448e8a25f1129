namespace Kahuna.Tests.Simulation.Network;

/// <summary>How the way from one node to another is.</summary>
/// <param name="IsOpen">It is neither cut nor clogged.</param>
/// <param name="IsUp">There is a connection.</param>
/// <param name="Epoch">Which one.</param>
internal readonly record struct LinkShape(bool IsOpen, bool IsUp, int Epoch);
