namespace Kahuna.Tests.Tidy;

/// <summary>What the README shows compiles and can be started.</summary>
public sealed class ReadmeTests
{
    [Fact]
    public void Example_in_the_readme_is_the_compiled_one()
    {
        string[] compiled = [.. Repository.Lines("Kahuna.Tests/Tidy/ReadmeExample.cs").Select(line => line.Trim())];
        int first = Array.FindIndex(compiled, line => line.StartsWith("await using", StringComparison.Ordinal));
        string[] example = [.. Block("csharp").Single()];
        Assert.Equal(compiled.Skip(first).Take(example.Length), example);
        Assert.Equal("}", compiled[first + example.Length]);
    }

    [Fact]
    public void Scripts_in_the_readme_exist() =>
        Findings.AssertNone(Block("bash").SelectMany(lines => lines).Select(line => line.Split(' ')[0]).Where(
            word => word.Contains('/', StringComparison.Ordinal) && !Repository.Exists(word)));

    private static IEnumerable<IEnumerable<string>> Block(string language)
    {
        string[] lines = Repository.Lines("README.md");
        for (int i = 0; i < lines.Length; i++)
        {
            if (lines[i] == "```" + language)
            {
                yield return lines.Skip(i + 1).TakeWhile(line => line != "```");
            }
        }
    }
}
