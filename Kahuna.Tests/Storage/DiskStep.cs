namespace Kahuna.Tests.Storage;

/// <summary>An operation of <see cref="ModelDisk"/> that a test may let fail.</summary>
internal enum DiskStep
{
    Open,
    Read,
    Write,
    SyncData,
    Rename,
    Delete,
    SyncDirectory,
}
