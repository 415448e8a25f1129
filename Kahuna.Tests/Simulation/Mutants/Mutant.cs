namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// A planted bug: a change of the shipped source that the simulator must detect. Immutable, any thread.
/// </summary>
/// <param name="Name">The name of its file, without the extension.</param>
/// <param name="What">What is wrong, and why that is dangerous.</param>
/// <param name="Needs">What must happen in a run for it to show.</param>
internal sealed record Mutant(string Name, string What, string Needs, IReadOnlyList<MutantEdit> Edits);
