using System.Text;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// How operations and their ends are named in metrics, in the slow log and in traces (docs/metrics.md). Stateless.
/// </summary>
internal static class OperationNames
{
    private static readonly Dictionary<OutcomeStatus, string> s_statuses =
        Enum.GetValues<OutcomeStatus>().ToDictionary(
            static status => status, static status => Snake(status.ToString()));

    /// <summary>The name of an operation.</summary>
    public static string Of(CommandKind kind) => CommandKinds.Of(kind).Name.Replace(' ', '_');

    /// <summary>The name of a durability.</summary>
    public static string Of(Durability durability) =>
        durability == Durability.Ephemeral ? "ephemeral" : "persistent";

    /// <summary>The name of an outcome.</summary>
    public static string Of(OutcomeStatus status) => s_statuses.GetValueOrDefault(status, "unset");

    private static string Snake(string name)
    {
        StringBuilder text = new();
        foreach (char letter in name)
        {
            if (char.IsAsciiLetterUpper(letter) && text.Length > 0)
            {
                text.Append('_');
            }

            text.Append(char.ToLowerInvariant(letter));
        }

        return text.ToString();
    }
}
