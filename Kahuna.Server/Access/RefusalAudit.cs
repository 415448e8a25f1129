using System.Text;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Access;

/// <summary>
/// Tells the audit log which commands and watches the gate has refused. What is refused because the node does not know
/// the present rights is nobody's attempt, and is not told. Allocates only when it tells. Any thread.
/// </summary>
/// <param name="log">Takes the lines.</param>
internal sealed class RefusalAudit(IAuditLog log)
{
    /// <summary>Of a name, in bytes; the rest of a longer one is left out, so that a line stays short.</summary>
    public const int SubjectBytesMax = 1024;

    private const string Watching = "watch";

    private static readonly string[] s_actions =
        [.. Enumerable.Range(0, byte.MaxValue + 1).Select(static kind => InWords((CommandKind)kind))];

    /// <summary>What the audit log calls a kind of command: its name, as lower-case words.</summary>
    public static string ActionOf(CommandKind kind) => s_actions[(byte)kind];

    /// <summary>A command was refused.</summary>
    /// <param name="caller">Whose; null: nobody has said so.</param>
    /// <param name="rights">What the caller may do; null: nothing at all.</param>
    /// <param name="command">The command.</param>
    /// <param name="status">Of the refusal.</param>
    /// <param name="sentence">Which permission is missing, and on which names.</param>
    public void Refused(
        Caller? caller, Rights? rights, scoped in Command command, OutcomeStatus status, string sentence)
    {
        if (status is OutcomeStatus.PermissionDenied or OutcomeStatus.Unauthenticated)
        {
            Write(
                caller,
                ActionOf(command.Kind),
                rights is null ? command.Key : CommandRights.RefusedName(rights, in command),
                sentence);
        }
    }

    /// <summary>A watch was refused, or ended because its right is gone.</summary>
    /// <param name="caller">Whose; null: nobody has said so.</param>
    /// <param name="name">What it is for.</param>
    /// <param name="sentence">Which permission is missing.</param>
    public void RefusedWatch(Caller? caller, ReadOnlySpan<byte> name, string sentence) =>
        Write(caller, Watching, name, sentence);

    private void Write(Caller? caller, string action, ReadOnlySpan<byte> name, string sentence) =>
        log.Write(caller ?? Caller.Anybody, action, TextOf(name), AuditResults.Refused(sentence));

    private static string TextOf(ReadOnlySpan<byte> name) => name.Length <= SubjectBytesMax
        ? Encoding.UTF8.GetString(name)
        : Encoding.UTF8.GetString(name[..SubjectBytesMax]) + "…";

    private static string InWords(CommandKind kind)
    {
        if (!Enum.IsDefined(kind))
        {
            return "command";
        }

        StringBuilder words = new();
        foreach (char letter in kind.ToString())
        {
            if (char.IsAsciiLetterUpper(letter) && words.Length > 0)
            {
                words.Append(' ');
            }

            words.Append(char.ToLowerInvariant(letter));
        }

        return words.ToString();
    }
}
