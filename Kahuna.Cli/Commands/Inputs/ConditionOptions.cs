using System.CommandLine;
using System.Text;
using Kahuna.Cli.Errors;
using Kahuna.Client.Locks;

namespace Kahuna.Cli.Commands.Inputs;

/// <summary>The conditions of a write: a value or revision of the key, and a lock that must be held.</summary>
internal sealed class ConditionOptions
{
    public Option<string> IfValue { get; } = Given.Text("--if-value", "text", "Only if the key has this value");

    public Option<long?> IfRevision { get; } = Given.Number("--if-revision", "Only if the key has this revision", 1);

    public Option<string> Fence { get; } = Given.Text(
        "--fence", "lock:token", "Only while this fencing token holds this lock; see 'kahuna lock'");

    /// <summary>Adds them to a command.</summary>
    public void AddTo(CliCommand command)
    {
        command.Add(IfValue);
        command.Add(IfRevision);
        command.Add(Fence);
    }

    /// <summary>The value that the key must have; null: any.</summary>
    public KahunaValue? ValueOf(CommandCall call) =>
        call.Get(IfValue) is { } text ? new KahunaValue(Encoding.UTF8.GetBytes(text)) : default(KahunaValue?);

    /// <summary>The revision that the key must have; null: any.</summary>
    public Revision? RevisionOf(CommandCall call) =>
        call.Get(IfRevision) is { } number ? new Revision(number) : null;

    /// <summary>The fence; null: none.</summary>
    /// <exception cref="CliException">It cannot be read.</exception>
    public Fence? FenceOf(CommandCall call) => FenceOf(call.Get(Fence));

    /// <inheritdoc cref="FenceOf(CommandCall)"/>
    public static Fence? FenceOf(string? text)
    {
        if (text is null)
        {
            return null;
        }

        int colon = text.LastIndexOf(':');
        return colon > 0 && long.TryParse(text.AsSpan(colon + 1), out long token) && token > 0
            ? new Fence(text[..colon], new FencingToken(token))
            : throw new CliException($"--fence: '{text}' is not the name of a lock, a colon and a fencing token.");
    }

    /// <summary>Refuses conditions together with an option that has none.</summary>
    /// <exception cref="CliException">One is given.</exception>
    public void RefuseFor(CommandCall call, Option other)
    {
        if (call.Get(IfValue) is not null || call.Get(IfRevision) is not null || call.Get(Fence) is not null)
        {
            throw new CliException($"{other.Name} takes no conditions; delete the keys one by one.");
        }
    }
}
