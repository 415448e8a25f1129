using Kahuna.Cli.Diagnosis;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Cluster;

/// <summary><c>doctor</c>: checks the health of a cluster, and says what to do. Static.</summary>
internal static class DoctorCommand
{
    private static readonly string[] s_words = ["ok", "warning", "problem"];

    public static CliCommand Create() => new(
        "doctor", "Check the cluster and say what to do; exit code 1 when something is wrong", async call =>
        {
            KahunaClientOptions options = await call.ClientOptionsAsync().ConfigureAwait(false);
            using NodeProbe probe = new(options);
            Uri[] nodes = await NodesAsync(call, options).ConfigureAwait(false);
            Examination known = new(
                await probe.ReadAsync(nodes, call.Stop).ConfigureAwait(false),
                await SignInAsync(call).ConfigureAwait(false));
            Finding[] findings = [.. Checks.All(known)];
            await call.Output.WriteAllAsync(
                ["state", "check", "subject", "found", "advice"],
                findings.Select(static finding => new Record
                {
                    { "state", s_words[(int)finding.Severity] },
                    { "check", finding.Check },
                    { "subject", finding.Subject },
                    { "found", finding.Text },
                    { "advice", finding.Advice },
                })).ConfigureAwait(false);
            int problems = findings.Count(static finding => finding.Severity == Severity.Problem);
            return problems == 0 ? ExitCode.Done
                : call.NotThere(problems == 1 ? "1 problem was found." : $"{problems} problems were found.");
        });

    /// <summary>The nodes that the cluster names; those of the command line when it does not answer.</summary>
    private static async Task<Uri[]> NodesAsync(CommandCall call, KahunaClientOptions options)
    {
        try
        {
            ClusterDescription cluster = await ClusterCommands.DescribeAsync(call).ConfigureAwait(false);
            return [.. cluster.Nodes.Select(static node => node.Endpoint)];
        }
        catch (KahunaException)
        {
            return [.. options.Endpoints];
        }
    }

    private static async Task<string?> SignInAsync(CommandCall call)
    {
        try
        {
            KahunaClient client = await call.ConnectAsync().ConfigureAwait(false);
            return (await client.Admin.WhoAmIAsync(call.Stop).ConfigureAwait(false)).Method;
        }
        catch (KahunaException)
        {
            return null;
        }
    }
}
