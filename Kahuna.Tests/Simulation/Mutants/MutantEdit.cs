namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>One change that a planted bug makes. Owned by its <see cref="Mutant"/>; immutable, any thread.</summary>
/// <param name="Line">The line of the bug's file that begins the edit, from 1 on.</param>
/// <param name="Scope">The type and the member that hold the anchor, as in <c>Roles.TakeVote</c>.</param>
/// <param name="Anchor">Source text that is there exactly once; white space and comments do not count.</param>
/// <param name="Text">Source text that replaces the anchor or is added.</param>
internal sealed record MutantEdit(int Line, string Scope, MutantEditKind Kind, string Anchor, string Text);
