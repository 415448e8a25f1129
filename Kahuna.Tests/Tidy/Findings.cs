namespace Kahuna.Tests.Tidy;

/// <summary>Shows everything that a tidy test found, not only the first few. Stateless.</summary>
internal static class Findings
{
    public static void AssertNone(IEnumerable<string> findings)
    {
        List<string> all = [.. findings.Distinct()];
        Assert.True(all.Count == 0, $"{all.Count} findings:\n" + string.Join('\n', all));
    }
}
