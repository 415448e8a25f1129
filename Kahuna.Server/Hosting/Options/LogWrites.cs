namespace Kahuna.Server.Hosting.Options;

/// <summary>How the log is written.</summary>
internal enum LogWrites
{
    /// <summary>Past the system's page cache, where the file system can. The default.</summary>
    Direct,

    /// <summary>Through the page cache.</summary>
    Cached,
}
