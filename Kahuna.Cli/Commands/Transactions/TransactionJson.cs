using System.Globalization;
using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Client.Transactions;
using Kahuna.Wire;

namespace Kahuna.Cli.Commands.Transactions;

/// <summary>
/// A transaction as a JSON object with the arrays <c>if</c>, <c>then</c> and <c>else</c>. It has the conditions and
/// operations of <see cref="TransactionText"/>. Static, any thread.
/// </summary>
internal static class TransactionJson
{
    /// <summary>The most bytes of a document: four times what a transaction may have, for base64 and escapes.</summary>
    public const int BytesMax = 4 * Limits.TransactionBytesMax;

    private static readonly byte[] s_mark = [0xef, 0xbb, 0xbf];

    /// <summary>The input begins with a brace, which no line of a text does.</summary>
    public static bool Is(ReadOnlySpan<byte> input) => WithoutMark(input).TrimStart(" \t\r\n"u8) is [(byte)'{', ..];

    /// <summary>Reads the document.</summary>
    /// <param name="input">The document in UTF-8.</param>
    /// <param name="level">The durability of the keys.</param>
    /// <exception cref="CliException">It cannot be read; the message says which field is wrong, and why.</exception>
    public static TransactionPlan Read(ReadOnlyMemory<byte> input, Durability level)
    {
        if (input.Length > BytesMax)
        {
            throw new CliException(string.Create(
                CultureInfo.InvariantCulture, $"The transaction has more than {BytesMax:N0} bytes of JSON; split it."));
        }

        try
        {
            using JsonDocument document = JsonDocument.Parse(input[^WithoutMark(input.Span).Length..]);
            return Read(new JsonItem(document.RootElement, ""), level);
        }
        catch (JsonException failure)
        {
            throw new CliException(string.Create(
                CultureInfo.InvariantCulture,
                $"The transaction is no JSON at line {failure.LineNumber + 1}, "
                    + $"byte {failure.BytePositionInLine + 1}."));
        }
    }

    private static TransactionPlan Read(JsonItem root, Durability level)
    {
        root.AllowOnly("if", "then", "else");
        TransactionPlan plan = new(
            [.. All("if", item => Condition(item).WithDurability(level))],
            [.. All("then", item => Operation(item).WithDurability(level))],
            [.. All("else", item => Operation(item).WithDurability(level))]);
        return plan.Then.Count + plan.Else.Count > 0
            ? plan
            : throw new CliException("then: the transaction has no operation, such as {\"get\":\"KEY\"}.");

        IEnumerable<T> All<T>(string name, Func<JsonItem, T> read) =>
            root.Items(name, Limits.TransactionItemsMax).Select(item => Checked(item, read));
    }

    private static T Checked<T>(JsonItem item, Func<JsonItem, T> read)
    {
        try
        {
            return read(item);
        }
        catch (ArgumentException failure)
        {
            throw item.Wrong(failure.Message.Split(" (Parameter '")[0].TrimEnd('.'));
        }
    }

    private static KeyCondition Condition(JsonItem item)
    {
        item.AllowOnly("key", "exists", "value", "valueBase64", "revision", "noKeys", "noOtherKeys");
        string? asked = item.OneOf("exists", "value", "valueBase64", "revision", "noKeys", "noOtherKeys");
        if (asked is "noKeys" or "noOtherKeys")
        {
            item.AllowOnly(asked);
        }

        return asked switch
        {
            "exists" when item.Flag(asked) => KeyCondition.Exists(item.Text("key")),
            "exists" => KeyCondition.Absent(item.Text("key")),
            "value" => KeyCondition.HasValue(item.Text("key"), item.Text(asked)),
            "valueBase64" => KeyCondition.HasValue(item.Text("key"), item.Bytes(asked)),
            "revision" => KeyCondition.HasRevision(item.Text("key"), new Revision(item.Number(asked, min: 1))),
            "noKeys" => KeyCondition.NoKeys(item.Text(asked)),
            "noOtherKeys" => KeyCondition.NoOtherKeys(item.Text(asked)),
            _ => throw item.Wrong(
                "a condition has a key and one of exists, value, valueBase64 and revision, or noKeys or noOtherKeys"),
        };
    }

    private static KeyOperation Operation(JsonItem item)
    {
        item.AllowOnly(
            "set", "get", "exists", "delete", "extend", "increment", "value", "valueBase64", "ttl", "by");
        switch (item.OneOf("set", "get", "exists", "delete", "extend", "increment"))
        {
            case "set":
                item.AllowOnly("set", "value", "valueBase64", "ttl");
                KahunaValue value = item.OneOf("value", "valueBase64") switch
                {
                    "value" => item.Text("value"),
                    "valueBase64" => item.Bytes("valueBase64"),
                    _ => throw item.Wrong("a set has one of value and valueBase64"),
                };
                return KeyOperation.Set(item.Text("set"), value, item.Has("ttl") ? item.Time("ttl") : null);
            case "extend":
                item.AllowOnly("extend", "ttl");
                return KeyOperation.Extend(item.Text("extend"), item.Time("ttl"));
            case "increment":
                item.AllowOnly("increment", "by");
                return KeyOperation.Increment(item.Text("increment"), item.Has("by") ? item.Number("by") : 1);
            case { } single:
                item.AllowOnly(single);
                string key = item.Text(single);
                return single == "get" ? KeyOperation.Get(key)
                    : single == "exists" ? KeyOperation.Exists(key)
                    : KeyOperation.Delete(key);
            default:
                throw item.Wrong("an operation has one of set, get, exists, delete, extend and increment");
        }
    }

    private static ReadOnlySpan<byte> WithoutMark(ReadOnlySpan<byte> input) =>
        input.StartsWith(s_mark) ? input[s_mark.Length..] : input;
}
