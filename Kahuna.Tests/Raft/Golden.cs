using System.Runtime.CompilerServices;

namespace Kahuna.Tests.Raft;

/// <summary>Golden texts of the Raft traces; KAHUNA_UPDATE_GOLDEN=1 writes them anew.</summary>
internal static class Golden
{
    public static void Check(string name, string text, [CallerFilePath] string file = "")
    {
        string folder = Path.Combine(Path.GetDirectoryName(file)!, "..", "Golden", "Raft");
        string path = Path.Combine(folder, name + ".txt");
        if (Environment.GetEnvironmentVariable("KAHUNA_UPDATE_GOLDEN") == "1")
        {
            Directory.CreateDirectory(folder);
            File.WriteAllText(path, text);
            return;
        }

        Assert.True(
            File.Exists(path),
            $"no golden file {name}.txt: run the tests with KAHUNA_UPDATE_GOLDEN=1 and read what it holds");
        Assert.Equal(File.ReadAllText(path).ReplaceLineEndings("\n"), text);
    }
}
