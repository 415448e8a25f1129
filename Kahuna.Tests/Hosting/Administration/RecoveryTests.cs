using Kahuna.Server.Access;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Access;
using Kahuna.Tests.Api.Access;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>A lost administrator: which votes count, what they change, and what they leave as it was.</summary>
public sealed class RecoveryTests
{
    private const string Password = "correct horse battery";

    private readonly MemoryLedger _ledger = new();
    private readonly AuditRecorder _audit = new();
    private readonly LineRecorder _log = new();
    private readonly ManualTime _time = new();
    private readonly RecoveryRequest _request;
    private readonly HashSet<int> _removed = [];

    public RecoveryTests() => _request = NewRequest();

    [Fact]
    public async Task One_vote_of_three_is_not_enough_and_two_are()
    {
        AdministratorRecovery first = Node(1);
        await StepsAsync(first, 5);
        Assert.Null(_ledger.Book.FindUser("root"));
        Assert.Single(RecoveryRows.Of(_ledger.Book).Votes);
        Assert.Empty(_removed);

        await StepsAsync(Node(2), 3);
        AssertMade();
        Assert.True(await first.StepAsync(default));
        Assert.Equal([1, 2], _removed.Order());
        Assert.Empty(RecoveryRows.Of(_ledger.Book).Votes);
        Assert.Equal(
            ["vote to recover administrator", "vote to recover administrator", "recover administrator"],
            _audit.Lines.Select(static line => line.Action));
    }

    [Theory]
    [InlineData(1, 1)]
    [InlineData(2, 2)]
    [InlineData(3, 2)]
    [InlineData(4, 3)]
    [InlineData(5, 3)]
    public async Task A_majority_is_more_than_half(int nodes, int needed)
    {
        for (ushort node = 1; node < needed; node++)
        {
            await StepsAsync(Node(node, nodes), 4);
        }

        Assert.Empty(_ledger.Book.Users);
        await StepsAsync(Node((ushort)needed, nodes), 4);
        AssertMade();
    }

    [Fact]
    public async Task Votes_for_different_requests_do_not_add_up()
    {
        await StepsAsync(Node(1), 3);
        await StepsAsync(Node(2, request: NewRequest()), 3);
        await StepsAsync(Node(3, request: _request with { User = "mallory" }), 3);
        await StepsAsync(Node(3, request: _request with { MadeMs = _request.MadeMs + 1 }), 3);
        Assert.Empty(_ledger.Book.Users);
    }

    [Fact]
    public async Task A_node_has_one_vote_whatever_directories_it_had()
    {
        await StepsAsync(Node(1, directory: 7), 3);
        await StepsAsync(Node(1, directory: 8), 3);
        Assert.Equal(8ul, Assert.Single(RecoveryRows.Of(_ledger.Book).Votes).DirectoryId);
        Assert.Empty(_ledger.Book.Users);
    }

    [Fact]
    public async Task A_node_that_is_none_of_the_cluster_has_no_vote()
    {
        _ledger.Put(new RecoveryVote(new NodeId(9), 1, _request.Fingerprint, Now).ToRow());
        await StepsAsync(Node(1), 3);
        Assert.Empty(_ledger.Book.Users);
    }

    [Fact]
    public async Task An_old_vote_does_not_count_and_goes()
    {
        _ledger.Put(new RecoveryVote(new NodeId(2), 1, _request.Fingerprint, Now - 3_600_000).ToRow());
        await StepsAsync(Node(1), 3);
        Assert.Empty(_ledger.Book.Users);
        Assert.Equal(new NodeId(1), Assert.Single(RecoveryRows.Of(_ledger.Book).Votes).Node);
    }

    [Fact]
    public async Task A_request_that_is_an_hour_old_is_given_up_with_its_vote()
    {
        AdministratorRecovery first = Node(1);
        await StepsAsync(first, 2);
        _time.Advance(RecoveryRequest.Lifetime);
        Assert.True(await first.StepAsync(default));
        Assert.True(await Node(2).StepAsync(default));
        Assert.Empty(RecoveryRows.Of(_ledger.Book).Votes);
        Assert.Empty(_ledger.Book.Users);
        Assert.Equal([1, 2], _removed.Order());
        Assert.Contains(_audit.Lines, static line => line.Result == "refused: no majority of the nodes voted in time");
    }

    [Fact]
    public async Task A_request_from_the_future_is_none()
    {
        RecoveryRequest later = _request with { MadeMs = Now + 600_000 };
        Assert.True(await Node(1, 1, request: later).StepAsync(default));
        Assert.Empty(_ledger.Book.Users);
    }

    [Fact]
    public async Task A_user_who_exists_gets_the_password_and_the_role_and_keeps_the_rest()
    {
        TokenRecord token = new(TokenText.NewId(), 2, new byte[32], 0, 0, "note");
        _ledger.Put(
            AccessRowFormat.Of(AccessCluster.Role("r", "ann")),
            AccessRowFormat.Of(new UserRecord(1, "ann") { Roles = ["r"], Password = Passwords.Hash("of ann, own") }),
            AccessRowFormat.Of(new UserRecord(2, "root")
            {
                Roles = ["r"],
                CertificateNames = ["CN=root"],
                IsDisabled = true,
                Password = Passwords.Hash("lost and gone"),
                PasswordVersion = 7,
            }),
            AccessRowFormat.Of(token),
            AccessRowFormat.OfLastUserId(5));
        await StepsAsync(Node(1, 1), 3);
        AssertMade();
        UserRecord root = _ledger.Book.FindUser("root")!;
        Assert.Equal((2u, 8u, false), (root.Id, root.PasswordVersion, root.IsDisabled));
        Assert.Equal(["r", "admin"], root.Roles);
        Assert.Equal(["CN=root"], root.CertificateNames);
        Assert.True(Passwords.Verify(_ledger.Book.FindUser("ann")!.Password!, "of ann, own"));
        Assert.Equal(5u, _ledger.Book.LastUserId);
        Assert.NotNull(_ledger.Book.FindToken(token.Id));
    }

    [Fact]
    public async Task A_new_user_gets_a_number_that_nobody_had()
    {
        _ledger.Put(AccessRowFormat.OfLastUserId(5));
        await StepsAsync(Node(1, 1), 3);
        Assert.Equal(6u, _ledger.Book.FindUser("root")!.Id);
        Assert.Equal(6u, _ledger.Book.LastUserId);
    }

    [Fact]
    public async Task What_was_carried_out_is_not_carried_out_again()
    {
        await StepsAsync(Node(1), 3);
        await StepsAsync(Node(2), 3);
        UserRecord root = _ledger.Book.FindUser("root")!;
        PasswordHash chosen = Passwords.Hash("chosen afterwards");
        _ledger.Put(AccessRowFormat.Of(root with { Password = chosen, PasswordVersion = 9 }));

        // Files that were left behind, on a majority.
        foreach (ushort node in (ushort[])[1, 3])
        {
            Assert.True(await Node(node).StepAsync(default));
        }

        Assert.True(Passwords.Verify(_ledger.Book.FindUser("root")!.Password!, "chosen afterwards"));
        Assert.Empty(RecoveryRows.Of(_ledger.Book).Votes);
    }

    [Fact]
    public async Task Other_changes_that_come_first_only_delay_it()
    {
        _ledger.Before = asked =>
        {
            if (asked is 1 or 3)
            {
                _ledger.Put(AccessRowFormat.Of(AccessCluster.Role($"r{asked}", "ann")));
            }
        };
        await StepsAsync(Node(1, 1), 6);
        AssertMade();
        Assert.NotNull(_ledger.Book.FindRole("r1"));
        Assert.NotNull(_ledger.Book.FindRole("r3"));
    }

    [Fact]
    public async Task It_runs_until_it_is_done_and_ends_with_the_node()
    {
        using CancellationTokenSource stop = new();
        Task alone = Node(1).RunAsync(stop.Token);
        await Wait.UntilAsync(_time, () => RecoveryRows.Of(_ledger.Book).Votes.Count == 1, stepMs: 100);
        Task other = Node(2).RunAsync(stop.Token);
        await Wait.UntilAsync(_time, () => alone.IsCompleted && other.IsCompleted, stepMs: 100);
        AssertMade();
        Task third = Node(3, request: NewRequest()).RunAsync(stop.Token);
        await stop.CancelAsync();
        await third.WaitAsync(Wait.Longest);
    }

    [Fact]
    public void Rows_come_back_as_they_were_and_nothing_else_is_one()
    {
        RecoveryVote vote = new(new NodeId(300), 77, _request.Fingerprint, 5);
        RecoveryVote read = RecoveryVote.Read(vote.ToRow())!;
        Assert.Equal((vote.Node, vote.DirectoryId, vote.VotedMs), (read.Node, read.DirectoryId, read.VotedMs));
        Assert.Equal(vote.Fingerprint, read.Fingerprint);
        RecoveryEnd end = new(_request.Fingerprint, 6);
        Assert.Equal(6, RecoveryEnd.Read(end.ToRow())!.EndedMs);
        Assert.Null(RecoveryVote.Read(end.ToRow()));
        Assert.Null(RecoveryEnd.Read(vote.ToRow()));
        Assert.Null(RecoveryVote.Read(vote.ToRow() with { Value = [.. vote.ToRow().Value!, 0] }));
        Assert.Null(RecoveryVote.Read(vote.ToRow() with { Value = [2, .. vote.ToRow().Value!.Skip(1)] }));
        Assert.Null(RecoveryVote.Read(vote.ToRow() with { Kind = (byte)AccessRowKind.Token }));
        Assert.Null(RecoveryEnd.Read(end.ToRow() with { Value = [1] }));
    }

    private long Now => _time.GetUtcNow().ToUnixTimeMilliseconds();

    private RecoveryRequest NewRequest() => RecoveryRequest.New("kahuna", "root", Password, _time.GetUtcNow());

    private AdministratorRecovery Node(
        ushort node, int nodes = 3, ulong directory = 1, RecoveryRequest? request = null) => new(
        request ?? _request,
        new RecoveryVoter(new NodeId(node), directory),
        new VoterSet(Enumerable.Range(1, nodes).Select(static id => new NodeId((ushort)id))),
        _ledger,
        new RecoveryPorts(_audit, _log, _time, () => _removed.Add(node)));

    private static async Task StepsAsync(AdministratorRecovery node, int most)
    {
        for (int i = 0; i < most && !await node.StepAsync(default); i++)
        {
        }
    }

    private void AssertMade()
    {
        UserRecord root = _ledger.Book.FindUser("root")!;
        Assert.True(Passwords.Verify(root.Password!, Password));
        Assert.True(_ledger.Book.RightsOf(root).IsAdmin);
        Assert.False(root.IsDisabled);
    }
}
