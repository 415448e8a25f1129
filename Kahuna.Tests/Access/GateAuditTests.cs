using System.Text.Json;
using Grpc.Core;

namespace Kahuna.Tests.Access;

/// <summary>
/// What a node's audit log has of requests that the gate refuses: one line for each, that is what it seems.
/// </summary>
[Collection(AccessNodeCollection.Name)]
public sealed class GateAuditTests(AccessNode node)
{
    [Theory]
    [InlineData("set", true)]
    [InlineData("set", false)]
    [InlineData("get", true)]
    [InlineData("get", false)]
    [InlineData("watch", true)]
    [InlineData("watch", false)]
    [InlineData("script", true)]
    [InlineData("script", false)]
    [InlineData("transaction", true)]
    [InlineData("transaction", false)]
    public async Task Each_refused_request_is_one_line(string action, bool isSdk)
    {
        await using AccessVisitor ann = node.Visit(isSdk, "ann");
        Assert.Equal(StatusCode.OK, (await ann.SetAsync("ann/first")).Code);
        IReadOnlyList<JsonElement> lines = await node.AuditOfAsync(async () =>
        {
            VisitAnswer answer = action switch
            {
                "set" => await ann.SetAsync("bob/a"),
                "get" => await ann.GetAsync("bob/a"),
                "watch" => await ann.WatchAsync("bob/a"),
                "script" => await ann.RunScriptAsync("set 'bob/a' 'v'"),
                _ => await ann.SetAllAsync(["ann/t", "bob/a"]),
            };
            Assert.Equal(StatusCode.PermissionDenied, answer.Code);
        });

        JsonElement line = Assert.Single(lines);
        Assert.Equal("ann", Text(line, "user"));
        Assert.Equal("password", Text(line, "method"));
        Assert.StartsWith("127.0.0.1:", Text(line, "address"));
        Assert.StartsWith(action, Text(line, "action"));
        Assert.Equal("bob/a", Text(line, "subject"));
        Assert.StartsWith("refused: The ", Text(line, "result"));
        Assert.Contains("permission", Text(line, "result"), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task What_is_done_is_not_audited_unless_it_administers(bool isSdk)
    {
        await using AccessVisitor ann = node.Visit(isSdk, "ann");
        await using AccessVisitor root = node.Visit(isSdk, "root");
        string name = $"made {isSdk}";
        IReadOnlyList<JsonElement> lines = await node.AuditOfAsync(async () =>
        {
            Assert.Equal(StatusCode.OK, (await ann.SetAsync("ann/a")).Code);
            Assert.Equal(StatusCode.OK, (await ann.SetAllAsync(["ann/t", "shared/t"])).Code);
            Assert.Equal(StatusCode.OK, (await root.CreateUserAsync(name, "ann")).Code);
            Assert.Equal(StatusCode.AlreadyExists, (await root.CreateUserAsync(name, "ann")).Code);
            Assert.Equal(StatusCode.OK, (await root.DeleteUserAsync(name)).Code);
        });

        Assert.Equal(
            [
                $"root create user {name}: done",
                $"root create user {name}: refused: There is a user \"{name}\" already.",
                $"root delete user {name}: done",
            ],
            lines.Select(static line =>
                $"{Text(line, "user")} {Text(line, "action")} {Text(line, "subject")}: {Text(line, "result")}"));
    }

    [Theory]
    [MemberData(nameof(HostileNames))]
    public async Task A_name_is_one_line_and_imitates_none(string name, bool isSdk)
    {
        await using AccessVisitor ann = node.Visit(isSdk, "ann");
        Assert.Equal(StatusCode.OK, (await ann.SetAsync("ann/first")).Code);
        IReadOnlyList<JsonElement> lines = await node.AuditOfAsync(async () =>
            Assert.Equal(StatusCode.PermissionDenied, (await ann.SetAsync("bob/" + name)).Code));

        JsonElement line = Assert.Single(lines);
        Assert.Equal("ann", Text(line, "user"));
        Assert.Equal("set", Text(line, "action"));
        Assert.Equal("bob/" + name, Text(line, "subject"));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Of_a_name_that_is_far_too_long_a_line_has_the_beginning(bool isSdk)
    {
        string name = "u\n" + new string('x', 64 * 1024);
        await using AccessVisitor ann = node.Visit(isSdk, "ann");
        Assert.Equal(StatusCode.OK, (await ann.SetAsync("ann/first")).Code);
        IReadOnlyList<JsonElement> lines = await node.AuditOfAsync(async () =>
        {
            Assert.Equal(StatusCode.PermissionDenied, (await ann.CreateUserAsync(name, "ann")).Code);
            Assert.NotEqual(StatusCode.OK, (await ann.SetAsync("bob/" + name)).Code);
        });

        Assert.All(lines, static line => Assert.InRange(line.GetRawText().Length, 1, 4096));
        Assert.Single(lines, static line => Text(line, "user") == "ann");
    }

    /// <summary>Names that would end a line, begin another, or steer a terminal; with each kind of client.</summary>
    public static TheoryData<string, bool> HostileNames()
    {
        TheoryData<string, bool> rows = [];
        foreach (string name in (string[])
        [
            "a\n{\"time\":\"2030-01-01T00:00:00Z\",\"user\":\"root\",\"action\":\"delete user\",\"result\":\"done\"}",
            "a\r\nb",
            "\",\"user\":\"root",
            "x': done",
            "\u001b[2J\u001b]0;title\u0007",
            "\u0085\u2028\u2029\u202e",
        ])
        {
            rows.Add(name, true);
            rows.Add(name, false);
        }

        return rows;
    }

    private static string Text(JsonElement line, string name) => line.GetProperty(name).GetString()!;
}
