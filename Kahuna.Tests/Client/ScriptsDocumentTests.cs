using System.Text.RegularExpressions;
using Kahuna.Client;
using Kahuna.Client.Scripts;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Client;

/// <summary>
/// The C# example of docs/scripts.md, word for word in the region below: it compiles, and it runs against a real node.
/// </summary>
public sealed partial class ScriptsDocumentTests
{
    private const string Indentation = "        ";

    [Fact]
    public void The_page_shows_the_code_that_is_run_here()
    {
        string page = File.ReadAllText(Repository.FullPath("docs/scripts.md"));
        string source = File.ReadAllText(Repository.FullPath("Kahuna.Tests/Client/ScriptsDocumentTests.cs"));
        string run = Region().Match(source).Groups[1].Value;
        Assert.Equal(
            Block().Match(page).Groups[1].Value,
            run.Replace("\n" + Indentation, "\n", StringComparison.Ordinal)[Indentation.Length..]);
    }

    [Fact]
    public async Task The_example_runs()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("accounts/ann", "100");
        await client.KeyValues.SetAsync("accounts/bob", "7");
        await RunAsync(client).WaitAsync(Wait.Longest);
        Assert.Equal("17", (await client.KeyValues.GetAsync("accounts/bob")).Value.AsString());
    }

    private static async Task RunAsync(KahunaClient client)
    {
        #region run a script
        const string Transfer = """
            let source = get @from
            let target = get @to
            if to_int(source) < @amount then
              throw "not enough"
            end
            set @from to_int(source) - @amount
            set @to to_int(target) + @amount
            return to_int(source) - @amount
            """;
        ScriptParameters parameters = new() { ["from"] = "accounts/ann", ["to"] = "accounts/bob", ["amount"] = 10 };
        ScriptResult left = await client.Scripts.RunAsync(Transfer, parameters);
        Console.WriteLine($"ann has {left.AsInteger()}");
        #endregion
        Assert.Equal(90, left.AsInteger());
    }

    [GeneratedRegex("^```csharp\n(.*?)^```$", RegexOptions.Multiline | RegexOptions.Singleline)]
    private static partial Regex Block();

    [GeneratedRegex("#region run a script\n(.*?) *#endregion", RegexOptions.Singleline)]
    private static partial Regex Region();
}
