using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/access.sh: what authentication costs writes, for an administrator and for a user with
/// many grants and quotas. Stateless.
/// </summary>
internal static class AccessCommand
{
    public const string Defaults = "--workers=64 --seconds=4 --rounds=5";

    private const string Root = "root";
    private const string User = "bench";
    private const string Password = "a password to measure with";
    private const int Roles = 4;
    private const int GrantsOfRole = 250;

    public static void Run(Measurement run)
    {
        string secret = run.PathOf("password");
        string bootstrap = run.PathOf("administrator");
        WriteSecret(secret, Password);
        WriteSecret(bootstrap, $"{Root}\n{Password}");
        ServerCluster open = new(run, "open");
        open.Up();
        ServerCluster closed = new(run, "closed");
        closed.Up("--auth", "required", "--auth-bootstrap-file", bootstrap);
        CreateAsync(closed).GetAwaiter().GetResult();

        (string Who, ServerCluster Cluster, string[] Options)[] callers =
        [
            ("without authentication", open, []),
            ("an administrator", closed, ["--user", Root, "--password-file", secret]),
            (FormattableString.Invariant($"a user with {Roles * GrantsOfRole:N0} grants and all quotas"),
                closed, ["--user", User, "--password-file", secret]),
        ];
        int rounds = run.Options.Number("rounds");
        List<double>[] rates = [.. callers.Select(static _ => new List<double>())];

        // The first round warms up.
        for (int round = 0; round <= rounds; round++)
        {
            for (int i = 0; i < callers.Length; i++)
            {
                int at = (i + round) % callers.Length;
                LoadPlan plan = new(
                    callers[at].Cluster.Endpoints, "set", run.Options.Number("workers"), run.Options.Number("seconds"))
                {
                    More = callers[at].Options,
                };
                double rate = LoadGenerator.Run(run, plan).Aggregate.Rps;
                if (round > 0)
                {
                    rates[at].Add(rate);
                }
            }
        }

        Print(run, [.. callers.Select(static caller => caller.Who)], rates);
        open.Clean();
        closed.Clean();
    }

    private static void Print(Measurement run, string[] who, List<double>[] rates)
    {
        run.Output.WriteLine(FormattableString.Invariant(
            $"sets per second at {run.Options.Number("workers")} workers, medians of {rates[0].Count} rounds"));
        for (int i = 0; i < who.Length; i++)
        {
            double rate = rates[i].Median();
            double ratio = rate / rates[0].Median();
            run.Output.WriteLine(FormattableString.Invariant(
                $"{who[i],-42} {rate,10:N0}  {ratio,5:F2}  ({rates[i].Min():N0} to {rates[i].Max():N0})"));
        }
    }

    private static async Task CreateAsync(ServerCluster cluster)
    {
        await using KahunaClient root = KahunaClient.Connect(cluster.Endpoints, static options =>
        {
            options.Insecure = true;
            options.Credentials = KahunaCredentials.Password(Root, Password);
            options.RequestTimeout = TimeSpan.FromMinutes(1);
        });
        string[] roles = [.. Enumerable.Range(0, Roles).Select(static i => $"bench-{i}")];
        for (int role = 0; role < roles.Length; role++)
        {
            int first = role * GrantsOfRole;
            await root.Admin.PutRoleAsync(new KahunaRole(
                roles[role],
                [
                    .. Enumerable.Range(first, GrantsOfRole).Select(static i => RoleGrant.OnPrefix(
                        i == 0 ? "bench:" : $"application-{i}/", Permissions.Data)),
                ]));
        }

        await root.Admin.CreateUserAsync(
            new KahunaUser
            {
                Name = User,
                Roles = roles,
                Quota = new UserQuota { Keys = 1 << 30, Bytes = 1L << 40, OperationsPerSecond = 10_000_000 },
            },
            Password);
    }

    private static void WriteSecret(string file, string text)
    {
        File.WriteAllText(file, text + "\n");
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(file, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }
    }
}
