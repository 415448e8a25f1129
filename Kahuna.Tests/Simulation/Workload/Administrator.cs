using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.Cluster;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Gives users rights and takes them while they work, at any node, one change after the other. Owned by one run.
/// </summary>
internal sealed class Administrator
{
    private const double PauseMs = 1_500;

    /// <summary>More than a ledger's patience by a slow clock: the node's process has ended meanwhile.</summary>
    private const long PatienceNs = 18_000_000_000;

    private const Permissions All = Permissions.Read | Permissions.Write | Permissions.Watch | Permissions.Transaction;

    private readonly SimCluster _cluster;
    private readonly SimContext _context;
    private readonly SimRandom _random;
    private readonly HashSet<SimUser> _made = [];

    public Administrator(SimCluster cluster)
    {
        _cluster = cluster;
        _context = new SimContext(cluster.Scheduler.After);
        _random = new SimRandom(cluster.Config.Seed).Fork(170_000);
    }

    /// <summary>It has not ended.</summary>
    public bool IsRunning { get; private set; }

    public void Start()
    {
        IsRunning = true;
        _context.Post(_ => _ = RunAsync(), null);
    }

    private async Task RunAsync()
    {
        try
        {
            while (!_cluster.LoadEnds)
            {
                SimUser? missing = SimUser.All.FirstOrDefault(user => !_made.Contains(user));
                SimUser user = missing ?? _random.Pick(SimUser.All);
                await ChangeAsync(user, missing is null ? Draw(user) : new UserRights(All, "", true));
                await _cluster.PauseAsync(_random.Exponential(missing is null ? PauseMs : 100));
            }
        }
        catch (Exception error)
        {
            _cluster.Rules.Break("the records change as they say", error.ToString());
        }

        IsRunning = false;
    }

    private UserRights Draw(SimUser user) => new(
        _random.Pick([All, All, All & ~Permissions.Write, All & ~Permissions.Read, All & ~Permissions.Transaction,
            All & ~Permissions.Watch, default]),
        _random.Pick(["", "", "", "k", "k1"]),
        !user.IsUnary || _random.Chance(0.8));

    private async Task ChangeAsync(SimUser user, UserRights rights)
    {
        SimNode node = _random.Pick(_cluster.Nodes);
        if (!node.IsUp || node.IsPaused || node.Access?.Ledger is not { } ledger)
        {
            return;
        }

        int life = node.Life;
        RightsChange change = _cluster.Rights.Begin(user, rights);
        TaskCompletionSource<AccessCommit?> end = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _ = AskAsync(ledger, user, rights, end);
        _cluster.Scheduler.After(PatienceNs, () => end.TrySetResult(null));
        if (await end.Task == AccessCommit.Applied && node.Life == life)
        {
            _made.Add(user);
            _cluster.Rights.Acknowledged(change, node);
        }
    }

    private static async Task AskAsync(
        AccessLedger ledger, SimUser user, UserRights rights, TaskCompletionSource<AccessCommit?> end)
    {
        RoleRecord role = new(user.Name, rights.Permissions == default ? [] :
        [
            new Grant(
                rights.Permissions, GrantLevels.Both, GrantScope.Prefix,
                Encoding.UTF8.GetBytes($"{user.Name}/{rights.Prefix}")),
        ]);
        UserRecord record = new(user.Id, user.Name) { Roles = [role.Name], IsDisabled = !rights.IsEnabled };
        end.TrySetResult(await ledger.ChangeAsync(
            ledger.Book.Version, [AccessRowFormat.Of(role), AccessRowFormat.Of(record)], CancellationToken.None));
    }
}
