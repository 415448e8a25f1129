using System.Globalization;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Connection;

/// <summary>
/// Checks that the cluster serves requests. Each partition of each durability answers one exists request, which its
/// leader confirms with a majority. Stateless, any thread.
/// </summary>
internal static class ClusterCheck
{
    /// <summary>Completes when every partition has answered; fails as the first operation that does.</summary>
    public static async ValueTask RunAsync(ClusterConnection connection, CancellationToken ct)
    {
        int partitions = await connection.PartitionsAsync(ct).ConfigureAwait(connection.CapturesContext);
        List<Task> answers = [];
        HashSet<int> asked = [];
        for (int i = 0; asked.Count < partitions; i++)
        {
            string key = string.Create(CultureInfo.InvariantCulture, $"check{i}/");
            if (asked.Add(KeyRouting.Partition(Encoding.UTF8.GetBytes(key), partitions)))
            {
                answers.Add(AskAsync(connection, key, Durability.Persistent, ct));
                if (connection.ServesEphemeral)
                {
                    answers.Add(AskAsync(connection, key, Durability.Ephemeral, ct));
                }
            }
        }

        await Task.WhenAll(answers).ConfigureAwait(connection.CapturesContext);
    }

    private static async Task AskAsync(
        ClusterConnection connection, string key, Durability durability, CancellationToken ct)
    {
        Operation<ExistsResult> operation = Operation<ExistsResult>.Rent();
        operation.Request.Begin(CommandKind.Exists, durability, key);
        await connection.Run(operation, ct).ConfigureAwait(connection.CapturesContext);
    }
}
