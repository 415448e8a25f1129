namespace Kahuna.Server.State.Rows;

/// <summary>
/// Steps from one revision of a key to the next: each write, deletions included, is one. Stateless, any thread.
/// </summary>
internal static class Revisions
{
    /// <summary>The revision that the next write gets.</summary>
    public static Revision Next(this Revision revision) => new(revision.Value + 1);

    /// <summary>The revision that a write follows.</summary>
    public static Revision Previous(this Revision revision) => new(revision.Value - 1);
}
