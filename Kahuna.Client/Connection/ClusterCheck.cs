using System.Globalization;
using System.Text;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Routing;

namespace Kahuna.Client.Connection;

/// <summary>
/// Whether the cluster serves requests: every partition, of each durability that it has, is asked whether a key exists,
/// which its leader answers after a majority has confirmed it. Stateless, any thread.
/// </summary>
internal static class ClusterCheck
{
    /// <summary>Ends when all have answered; fails as the first operation that does.</summary>
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
                answers.Add(AskAsync(connection, key, CommandDurability.Persistent, ct));
                if (connection.ServesEphemeral)
                {
                    answers.Add(AskAsync(connection, key, CommandDurability.Ephemeral, ct));
                }
            }
        }

        await Task.WhenAll(answers).ConfigureAwait(connection.CapturesContext);
    }

    private static async Task AskAsync(
        ClusterConnection connection, string key, CommandDurability durability, CancellationToken ct)
    {
        Operation<ExistsResult> operation = Operation<ExistsResult>.Rent();
        operation.Begin(CommandKind.Exists, durability, key);
        await connection.Run(operation, ct).ConfigureAwait(connection.CapturesContext);
    }
}
