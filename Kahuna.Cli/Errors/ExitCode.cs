namespace Kahuna.Cli.Errors;

/// <summary>What the process returns; part of the tool's interface (docs/cli.md). Static, any thread.</summary>
internal static class ExitCode
{
    public const int Done = 0;

    /// <summary>A key, lock or name is not there, or a condition did not hold; nothing was changed.</summary>
    public const int NotThere = 1;

    /// <summary>The command line, a file or an argument cannot be used.</summary>
    public const int Usage = 2;

    /// <summary>No node could be reached, or none answered in time. Nothing was changed.</summary>
    public const int Unavailable = 3;

    /// <summary>Not signed in, or a right is missing.</summary>
    public const int Denied = 4;

    /// <summary>A change was sent, and whether it was made is not known.</summary>
    public const int Unknown = 5;

    /// <summary>The cluster refused for another reason, or a lock was lost.</summary>
    public const int Refused = 6;

    public const int Interrupted = 130;
}
