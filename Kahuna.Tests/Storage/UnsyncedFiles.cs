namespace Kahuna.Tests.Storage;

/// <summary>
/// How many files of a <see cref="ModelDisk"/> hold bytes that were not synced, those without a name, too. Owned by the
/// disk.
/// </summary>
internal sealed class UnsyncedFiles
{
    public int Count { get; set; }
}
