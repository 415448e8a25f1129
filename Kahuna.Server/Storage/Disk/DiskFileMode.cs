namespace Kahuna.Server.Storage.Disk;

/// <summary>How a file is opened.</summary>
internal enum DiskFileMode
{
    /// <summary>It must exist; its content stays.</summary>
    Existing,

    /// <summary>Made, or emptied when it exists.</summary>
    Empty,
}
