using System.Net;
using System.Text.Json;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;

namespace Kahuna.Tests.Access;

/// <summary>
/// A thousand wrong passwords: what their sender learns, and what they cost the user whose password it is not, and
/// others. The node is its own: what was tried from an address counts against the address.
/// </summary>
[Collection(AccessNodeCollection.Name)]
public sealed class PasswordFloodTests : IAsyncLifetime
{
    private const int Tries = 1_000;

    private readonly AccessNode _node = new();

    public Task InitializeAsync() => _node.InitializeAsync();

    public Task DisposeAsync() => _node.DisposeAsync();

    [Fact]
    public async Task To_a_foreign_client_they_are_all_the_same_until_they_are_too_many()
    {
        await using AccessVisitor known = _node.Visit(isSdk: false, "ann");
        Assert.Equal(StatusCode.OK, (await known.SetAsync("ann/a")).Code);
        using GrpcChannel channel = _node.Channel();
        HashSet<string> sentences = [];
        Dictionary<StatusCode, int> counts = [];
        for (int i = 0; i < Tries; i++)
        {
            ForeignVisitor stranger = new(channel, AccessNode.Basic("ann", $"wrong password {i}"));
            VisitAnswer answer = await stranger.SetAsync("ann/a");
            sentences.Add(answer.Sentence);
            counts[answer.Code] = counts.GetValueOrDefault(answer.Code) + 1;
        }

        Assert.Equal(
            [StatusCode.ResourceExhausted, StatusCode.Unauthenticated], counts.Keys.Order());
        Assert.InRange(sentences.Count, 2, 2);
        await OthersGoOnAsync(known);
    }

    [Fact]
    public async Task The_SDK_goes_on_trying_no_faster_than_it_may()
    {
        await using AccessVisitor known = _node.Visit(isSdk: true, "ann");
        Assert.Equal(StatusCode.OK, (await known.SetAsync("ann/a")).Code);
        TimeSpan pause = TimeSpan.FromMilliseconds(1);
        await using KahunaClient client = _node.Sdk(
            KahunaCredentials.Password("ann", "not it at all"),
            options => (options.RetryBackoffMin, options.RetryBackoffMax, options.ReconnectBackoffMax) =
                (pause, pause, pause));
        SdkVisitor stranger = new(client);
        HashSet<string> sentences = [];
        while (RefusedSignIns() < Tries)
        {
            VisitAnswer answer = await stranger.SetAsync("ann/a");
            Assert.Contains(answer.Code, (StatusCode[])
                [StatusCode.Unauthenticated, StatusCode.Unavailable, StatusCode.ResourceExhausted]);
            Assert.DoesNotContain('\n', answer.Sentence);
            sentences.Add(answer.Sentence);
        }

        Assert.Contains("The user name or the password is wrong.", sentences);
        await OthersGoOnAsync(known);
    }

    /// <summary>The user by a connection that is open, and by a new one; another user from elsewhere.</summary>
    private async Task OthersGoOnAsync(AccessVisitor known)
    {
        Assert.Equal(StatusCode.OK, (await known.SetAsync("ann/a")).Code);
        foreach (bool isSdk in (bool[])[true, false])
        {
            await using AccessVisitor again = _node.Visit(isSdk, "ann");
            Assert.Equal(StatusCode.OK, (await again.SetAsync("ann/a")).Code);
        }

        if (OperatingSystem.IsLinux())
        {
            await using AccessVisitor bob = new ForeignVisitor(
                _node.Channel(from: IPAddress.Parse("127.0.0.2")), AccessNode.Basic("bob", "bobbob"));
            Assert.Equal(StatusCode.OK, (await bob.SetAsync("bob/a")).Code);
        }
    }

    private long RefusedSignIns() => _node.AuditLines().Sum(static line =>
        (line.GetProperty("action").GetString() == "sign in" ? 1 : 0)
        + (line.TryGetProperty("suppressed", out JsonElement more) ? more.GetInt64() : 0));
}
