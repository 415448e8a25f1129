using System.Globalization;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;
using Kahuna.Client.Transactions;

namespace Kahuna.Cli.Commands.Transactions;

/// <summary>
/// A transaction as text, one condition or operation per line: <c>if exists KEY</c>, <c>then set KEY VALUE</c>,
/// <c>else get KEY</c>. A line without one of the three words belongs to <c>then</c>. Words are those of
/// <see cref="QuotedWords"/>. Static, any thread.
/// </summary>
internal static class TransactionText
{
    /// <summary>Reads all lines.</summary>
    /// <param name="text">The text.</param>
    /// <param name="level">The durability of the keys.</param>
    /// <exception cref="CliException">A line cannot be read; the message says which, and what it should be.</exception>
    public static TransactionPlan Read(string text, Durability level)
    {
        TransactionPlan plan = new([], [], []);
        int number = 0;
        foreach (string line in text.ReplaceLineEndings("\n").Split('\n'))
        {
            number++;
            try
            {
                Read(plan, [.. QuotedWords.Of(line)], level);
            }
            catch (FormatException failure)
            {
                throw new CliException(string.Create(
                    CultureInfo.InvariantCulture, $"Line {number} of the transaction: {failure.Message}."));
            }
        }

        return plan.Then.Count + plan.Else.Count + plan.Conditions.Count > 0
            ? plan
            : throw new CliException("The transaction has no line. Write one such as: then set KEY VALUE.");
    }

    private static void Read(TransactionPlan plan, byte[][] words, Durability level)
    {
        if (words.Length == 0)
        {
            return;
        }

        string part = Text(words[0]);
        if (part == "if")
        {
            plan.Conditions.Add(Condition(words[1..]).WithDurability(level));
            return;
        }

        List<KeyOperation> list = part == "else" ? plan.Else : plan.Then;
        list.Add(Operation(part is "then" or "else" ? words[1..] : words).WithDurability(level));
    }

    private static KeyCondition Condition(byte[][] words) => (Word(words), words.Length) switch
    {
        ("exists", 2) => KeyCondition.Exists(Text(words[1])),
        ("absent", 2) => KeyCondition.Absent(Text(words[1])),
        ("value", 3) => KeyCondition.HasValue(Text(words[1]), words[2]),
        ("revision", 3) => KeyCondition.HasRevision(Text(words[1]), new Revision(Number(words[2]))),
        ("no-keys", 2) => KeyCondition.NoKeys(Text(words[1])),
        ("no-other-keys", 2) => KeyCondition.NoOtherKeys(Text(words[1])),
        _ => throw new FormatException(
            "a condition is one of: if exists KEY, if absent KEY, if value KEY VALUE, if revision KEY NUMBER, "
                + "if no-keys PREFIX, if no-other-keys PREFIX"),
    };

    private static KeyOperation Operation(byte[][] words) => (Word(words), words.Length) switch
    {
        ("set", 3) => KeyOperation.Set(Text(words[1]), words[2]),
        ("set", 4) => KeyOperation.Set(Text(words[1]), words[2], Time(words[3])),
        ("get", 2) => KeyOperation.Get(Text(words[1])),
        ("exists", 2) => KeyOperation.Exists(Text(words[1])),
        ("del", 2) => KeyOperation.Delete(Text(words[1])),
        ("extend", 3) => KeyOperation.Extend(Text(words[1]), Time(words[2])),
        ("incr", 2) => KeyOperation.Increment(Text(words[1])),
        ("incr", 3) => KeyOperation.Increment(Text(words[1]), Number(words[2])),
        _ => throw new FormatException(
            "an operation is one of: set KEY VALUE [TTL], get KEY, exists KEY, del KEY, extend KEY TTL, "
                + "incr KEY [NUMBER]"),
    };

    private static string Word(byte[][] words) => words.Length == 0 ? "" : Text(words[0]);

    private static string Text(byte[] word) => QuotedWords.Text(word);

    private static long Number(byte[] word) =>
        long.TryParse(Text(word), NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long number)
            ? number
            : throw new FormatException($"'{Text(word)}' is not a whole number");

    private static TimeSpan Time(byte[] word) => SpanText.TryParse(Text(word), out TimeSpan span)
        ? span
        : throw new FormatException($"'{Text(word)}' is not {SpanText.Form}");
}

/// <summary>A transaction as it was read. Its lists are filled by the reader, and then left alone.</summary>
/// <param name="Conditions">What has to hold.</param>
/// <param name="Then">What is done if it does.</param>
/// <param name="Else">What is done if it does not.</param>
internal sealed record TransactionPlan(List<KeyCondition> Conditions, List<KeyOperation> Then, List<KeyOperation> Else);
