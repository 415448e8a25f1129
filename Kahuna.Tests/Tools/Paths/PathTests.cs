using System.Globalization;

namespace Kahuna.Tests.Tools.Paths;

/// <summary>How many files a reader opens who follows an operation from the call to the answer.</summary>
public sealed class PathTests
{
    /// <summary>
    /// 60 on a machine that does nothing else (docs/adr/0033-files-by-idea.md). On a busy one a call also takes other
    /// ways: a writer's thread, a frame in pieces.
    /// </summary>
    private const int SetFilesMax = 64;

    [Fact]
    public void A_persistent_set_passes_few_files()
    {
        using StringWriter output = new();
        using StringWriter errors = new();
        Assert.Equal(0, PathCommand.Run([], output, errors));
        string line = output.ToString().Split('\n').Single(line => line.StartsWith("set ", StringComparison.Ordinal));
        int files = int.Parse(line.Split(' ', StringSplitOptions.RemoveEmptyEntries)[1], CultureInfo.InvariantCulture);
        Assert.InRange(files, 40, SetFilesMax);
    }

    [Fact]
    public void A_wrong_argument_is_refused()
    {
        using StringWriter output = new();
        using StringWriter errors = new();
        Assert.Equal(2, PathCommand.Run(["--file"], output, errors));
        Assert.Equal("", output.ToString());
        Assert.Contains("usage", errors.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public void A_line_of_the_list_is_read_as_it_was_written()
    {
        WovenMethod method = new("Kahuna.Server.Raft.RaftCore", "Step", "Kahuna.Server/Raft/RaftCore.cs", 7, false);
        Assert.Equal(method, WovenMethod.Parse(method.ToLine()));
        Assert.Throws<InvalidDataException>(() => WovenMethod.Parse("Kahuna.Server.Raft.RaftCore"));
    }
}
