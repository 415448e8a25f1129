namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>How an edit of a planted bug changes the member that it names. Immutable.</summary>
internal enum MutantEditKind
{
    /// <summary>The text takes the place of the anchor; an empty text removes it.</summary>
    Replace,

    /// <summary>The text comes right behind the anchor.</summary>
    After,

    /// <summary>The text comes right in front of the anchor.</summary>
    Before,

    /// <summary>The text becomes the last members of the type. There is no anchor.</summary>
    Add,
}
