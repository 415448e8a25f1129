using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Simulation;

/// <summary>The planted bugs still fit the source that they are patches of. That the simulator finds them is shown by scripts/mutants.sh.</summary>
public sealed class MutantTests
{
    private const string Folder = "Kahuna.Tests/Simulation/Mutants/";

    private static readonly string[] s_patches = [.. Repository.Files.Where(static file => file.StartsWith(Folder, StringComparison.Ordinal) && file.EndsWith(".patch", StringComparison.Ordinal))];

    [Fact]
    public void There_are_enough_of_them_and_each_is_described()
    {
        Assert.True(s_patches.Length >= 36, $"{s_patches.Length} planted bugs");
        string table = string.Join('\n', Repository.Lines(Folder + "README.md"));
        Findings.AssertNone(s_patches.Select(Path.GetFileNameWithoutExtension).Where(name => !table.Contains($"| {name} |", StringComparison.Ordinal)).Select(static name => $"{name} is not in the table"));
    }

    [Fact]
    public void Each_has_been_looked_for_and_the_page_says_with_what_result()
    {
        string page = string.Join('\n', Repository.Lines("docs/simulation.md"));
        Findings.AssertNone(s_patches.Select(Path.GetFileNameWithoutExtension)
            .Where(name => !page.Contains($"\n| {name} |", StringComparison.Ordinal) && !page.Contains($"`{name}`", StringComparison.Ordinal))
            .Select(static name => $"{name} has no row in docs/simulation.md, and no sentence says why"));
    }

    [Fact]
    public void Every_patch_applies() => Findings.AssertNone(s_patches.SelectMany(Misfits));

    [Fact]
    public void Patches_change_shipped_source_only() =>
        Findings.AssertNone(s_patches.SelectMany(patch => Repository.Lines(patch)
            .Where(static line => line.StartsWith("+++ ", StringComparison.Ordinal))
            .Where(static line => !line.StartsWith("+++ b/Kahuna.Server/", StringComparison.Ordinal) && !line.StartsWith("+++ b/Kahuna.Client/", StringComparison.Ordinal))
            .Select(line => $"{patch}: {line}")));

    [Fact]
    public void What_a_patch_adds_is_where_it_can_be() => Findings.AssertNone(s_patches.SelectMany(Misplaced));

    /// <summary>Lines that are added right behind the end of what they are indented as a part of: a patch that was moved to where its context happens to fit.</summary>
    private static IEnumerable<string> Misplaced(string patch)
    {
        List<string> after = [];
        foreach (string line in Repository.Lines(patch).Where(static line => line.Length > 0 && line[0] is '@' or '+' or ' ' && !line.StartsWith("+++ ", StringComparison.Ordinal)))
        {
            if (line[0] == '@')
            {
                after.Clear();
            }
            else if (!string.IsNullOrWhiteSpace(line[1..]))
            {
                string? outer = line[0] == '+' ? after.FindLast(before => IndentOf(before) < IndentOf(line)) : null;
                if (outer?[1..].Trim() == "}")
                {
                    yield return $"{patch}: \"{line.Trim()}\"";
                }

                after.Add(line);
            }
        }
    }

    private static int IndentOf(string line) => line.Length - line[1..].TrimStart().Length;

    /// <summary>The hunks whose lines are not in the file that they change.</summary>
    private static IEnumerable<string> Misfits(string patch)
    {
        string? file = null;
        List<string> hunk = [];
        foreach (string line in Repository.Lines(patch).Append("@@"))
        {
            if (line.StartsWith("@@", StringComparison.Ordinal) || line.StartsWith("diff ", StringComparison.Ordinal))
            {
                if (hunk.Count > 0 && !Holds(file!, hunk))
                {
                    yield return $"{patch}: {file} has no lines \"{hunk[0].Trim()}\" and following";
                }

                hunk = [];
            }
            else if (line.StartsWith("+++ b/", StringComparison.Ordinal))
            {
                file = line[6..];
            }
            else if (file is not null && line.Length > 0 && line[0] is ' ' or '-' && !line.StartsWith("--- ", StringComparison.Ordinal))
            {
                hunk.Add(line[1..]);
            }
        }
    }

    private static bool Holds(string file, List<string> lines)
    {
        string[] source = Repository.Lines(file);
        for (int at = 0; at + lines.Count <= source.Length; at++)
        {
            if (source.AsSpan(at, lines.Count).SequenceEqual(lines.ToArray()))
            {
                return true;
            }
        }

        return false;
    }
}
