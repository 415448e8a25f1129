namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a file.</summary>
internal sealed class ReadsFile
{
    public static bool Look(string path) => File.Exists(path);
}
