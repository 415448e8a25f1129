namespace Kahuna.Server.Storage.Disk;

/// <summary>Room on a disk, in bytes. <paramref name="Free"/> is what this process may still use.</summary>
internal readonly record struct DiskSpace(long Free, long Total);
