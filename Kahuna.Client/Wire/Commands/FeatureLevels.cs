namespace Kahuna.Wire.Commands;

/// <summary>
/// The register of feature levels: one row per level, ascending. A release that changes a format of the log, adds a
/// command kind, or changes what applying a command does adds a row, names it in <see cref="CommandKindRow.Since"/> or
/// in the gate, and raises <see cref="Supported"/> with it (docs/adr/0032-feature-levels.md). Stateless, any thread.
/// </summary>
internal static class FeatureLevels
{
    private static readonly FeatureLevelRow[] s_rows =
    [
        new(FeatureLevel.First, "0.1.0", "The commands and formats of the first release."),
    ];

    /// <summary>Every level that this build has, ascending.</summary>
    public static ReadOnlySpan<FeatureLevelRow> Rows => s_rows;

    /// <summary>The newest level of a release.</summary>
    public static FeatureLevel Newest => s_rows[^1].Level;

    /// <summary>
    /// A level above all released ones, which only builds that tests raise support. What it switches on shows that
    /// gates work: the command kind <see cref="CommandKind.FeatureProbe"/>, and a count of applied commands in the
    /// state.
    /// </summary>
    public static FeatureLevel Test => new(Newest.Value + 1);

    /// <summary>The levels that this build supports.</summary>
    public static FeatureRange Supported => new(FeatureLevel.First, Newest);

    /// <summary>The levels that a build of a test supports, which has <see cref="Test"/> in addition.</summary>
    public static FeatureRange SupportedInTest => new(FeatureLevel.First, Test);
}

/// <summary>One feature level. Immutable; see <see cref="FeatureLevels"/>.</summary>
/// <param name="Level">The level.</param>
/// <param name="Since">The first release that supports it.</param>
/// <param name="Title">What it switches on.</param>
internal sealed record FeatureLevelRow(FeatureLevel Level, string Since, string Title);
