using System.Text.Json;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Serializability;

/// <summary>Reads a list-append history (docs/histories.md). Stateless; any thread.</summary>
internal static class AppendHistoryReader
{
    /// <summary>The line is one of a list-append history.</summary>
    public static bool IsOne(string? line) => line is not null && line.Contains("\"txn\"", StringComparison.Ordinal);

    /// <summary>All transactions of a file.</summary>
    /// <exception cref="HistoryException">A line is malformed.</exception>
    public static List<AppendTransaction> Read(TextReader source)
    {
        List<AppendTransaction> transactions = [];
        for (int number = 1; source.ReadLine() is { } line; number++)
        {
            try
            {
                using JsonDocument document = JsonDocument.Parse(line);
                transactions.Add(Read(document.RootElement, number));
            }
            catch (JsonException)
            {
                throw new HistoryException(number, "is no JSON");
            }
        }

        return transactions;
    }

    private static AppendTransaction Read(JsonElement line, int number)
    {
        HistoryObject fields = new(line, string.Empty, number);
        AppendTransaction transaction = new()
        {
            Process = fields.Require("process", fields.Integer("process")),
            CallNs = fields.Require("call", fields.Integer("call")),
            ReturnNs = fields.Integer("return"),
            Outcome = fields.Text("outcome") switch
            {
                "ok" => HistoryOutcome.Ok,
                "fail" => HistoryOutcome.Fail,
                "unknown" => HistoryOutcome.Unknown,
                _ => throw new HistoryException(number, "outcome must be ok, fail or unknown"),
            },
            Steps = [.. Array(line, "txn", number).Select(step => ReadStep(step, number))],
            Line = number,
        };
        if (transaction.ReturnNs < transaction.CallNs)
        {
            throw new HistoryException(number, "return is before call");
        }

        return transaction.Outcome == HistoryOutcome.Ok && transaction.ReturnNs is null
            ? throw new HistoryException(number, "outcome is ok, and return is missing")
            : transaction;
    }

    private static AppendStep ReadStep(JsonElement step, int number)
    {
        if (step.ValueKind == JsonValueKind.Array
            && step.GetArrayLength() == 3
            && step[0].ValueKind == JsonValueKind.String
            && step[1].ValueKind == JsonValueKind.String)
        {
            string key = step[1].GetString()!;
            switch (step[0].GetString())
            {
                case "append" when step[2].ValueKind == JsonValueKind.Number && step[2].TryGetInt64(out long value):
                    return new AppendStep(key, value, null);
                case "r" when step[2].ValueKind == JsonValueKind.Null:
                    return new AppendStep(key, null, null);
                case "r" when step[2].ValueKind == JsonValueKind.Array:
                    return new AppendStep(
                        key, null, [.. step[2].EnumerateArray().Select(each => Integer(each, number))]);
            }
        }

        throw new HistoryException(
            number, "txn has a step that is neither [\"append\", key, number] nor [\"r\", key, [numbers] or null]");
    }

    private static long Integer(JsonElement element, int number) =>
        element.ValueKind == JsonValueKind.Number && element.TryGetInt64(out long value)
            ? value
            : throw new HistoryException(number, "a list has something that is no whole number of 64 bits");

    private static IEnumerable<JsonElement> Array(JsonElement line, string name, int number) =>
        line.TryGetProperty(name, out JsonElement found) && found.ValueKind == JsonValueKind.Array
            ? found.EnumerateArray()
            : throw new HistoryException(number, $"{name} must be a list");
}
