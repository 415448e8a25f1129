using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text;

namespace Kahuna.Tests.Wire;

/// <summary>
/// Files under Kahuna.Tests/Golden that fix a format: the text that a test produces must equal the file. With
/// KAHUNA_UPDATE_GOLDEN=1 the file is rewritten instead, and the change is seen in review.
/// </summary>
internal static class GoldenFile
{
    /// <summary>Compares a text with the golden file of that name below Kahuna.Tests/Golden.</summary>
    public static void Check(string name, string actual, [CallerFilePath] string source = "")
    {
        string path = PathOf(name, source);
        if (Environment.GetEnvironmentVariable("KAHUNA_UPDATE_GOLDEN") == "1")
        {
            Directory.CreateDirectory(Path.GetDirectoryName(path)!);
            File.WriteAllText(path, actual);
            return;
        }

        Assert.Equal(File.ReadAllText(path), actual);
    }

    /// <summary>The named dumps of a golden file.</summary>
    public static Dictionary<string, byte[]> ReadDumps(string name, [CallerFilePath] string source = "")
    {
        Dictionary<string, byte[]> dumps = [];
        string current = string.Empty;
        StringBuilder hex = new();
        foreach (string line in File.ReadLines(PathOf(name, source)))
        {
            if (line.StartsWith("# ", StringComparison.Ordinal))
            {
                current = line[2..];
                hex.Clear();
            }
            else
            {
                hex.Append(line.Replace(" ", string.Empty, StringComparison.Ordinal));
                dumps[current] = Convert.FromHexString(hex.ToString());
            }
        }

        return dumps;
    }

    /// <summary>A named hex dump, 16 bytes a line.</summary>
    public static void AppendDump(StringBuilder target, string name, ReadOnlySpan<byte> bytes)
    {
        target.Append(CultureInfo.InvariantCulture, $"# {name}\n");
        for (int at = 0; at < bytes.Length; at++)
        {
            target.Append(CultureInfo.InvariantCulture, $"{bytes[at]:x2}")
                .Append(at % 16 == 15 || at == bytes.Length - 1 ? '\n' : ' ');
        }
    }

    private static string PathOf(string name, string source)
    {
        string? folder = Path.GetDirectoryName(source);
        while (folder is not null && !File.Exists(Path.Combine(folder, "Kahuna.Tests.csproj")))
        {
            folder = Path.GetDirectoryName(folder);
        }

        Assert.NotNull(folder);
        return Path.Combine(folder, "Golden", name);
    }
}
