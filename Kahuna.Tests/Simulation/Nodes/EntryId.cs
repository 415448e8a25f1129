namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>A log entry, by its term and a hash of its kind and payload.</summary>
internal readonly record struct EntryId(ulong Term, ulong Hash);
