namespace Kahuna.Tests.Storage;

/// <summary>A directory of a test's own, removed at the end.</summary>
internal sealed class TemporaryDirectory : IDisposable
{
    public string Path { get; } = Directory.CreateTempSubdirectory("kahuna-log-").FullName;

    public void Dispose() => Directory.Delete(Path, recursive: true);
}
