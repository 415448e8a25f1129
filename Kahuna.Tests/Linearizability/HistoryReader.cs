using System.Globalization;
using System.Text;
using System.Text.Json;
using Kahuna.Tests.WatchStreams;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Reads a history file line by line (docs/histories.md). What is wrong with a line throws
/// <see cref="HistoryException"/> with its number. Stateless; any thread.
/// </summary>
internal static class HistoryReader
{
    /// <summary>UTF-8 that does not put another character in the place of a broken one.</summary>
    public static Encoding Encoding { get; } = new UTF8Encoding(
        encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);

    /// <summary>One operation per line, read when it is asked for.</summary>
    /// <param name="source">The file.</param>
    /// <param name="watches">Gets the lines that are watches; null: there must be none.</param>
    public static IEnumerable<HistoryOperation> Read(TextReader source, List<WatchStream>? watches = null)
    {
        for (int number = 1; ReadLine(source, number) is { } line; number++)
        {
            if (Read(line, number, watches) is { } operation)
            {
                yield return operation;
            }
        }
    }

    private static string? ReadLine(TextReader source, int number)
    {
        try
        {
            return source.ReadLine();
        }
        catch (DecoderFallbackException)
        {
            // The decoder works on blocks, so the broken byte can be some lines further on.
            throw new HistoryException(number, "here or in the lines below are bytes that are no UTF-8");
        }
    }

    private static HistoryOperation? Read(string line, int number, List<WatchStream>? watches)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(line);
            if (watches is not null && WatchHistoryReader.IsOne(document.RootElement))
            {
                watches.Add(WatchHistoryReader.Read(document.RootElement, number));
                return null;
            }

            return Read(new HistoryObject(document.RootElement, string.Empty, number), number);
        }
        catch (JsonException error)
        {
            string place = error.BytePositionInLine is { } position
                ? string.Create(CultureInfo.InvariantCulture, $" at byte {position + 1}")
                : string.Empty;
            throw new HistoryException(number, $"is no JSON{place}");
        }
        catch (InvalidOperationException)
        {
            throw new HistoryException(number, "holds an escaped character that is half of a pair");
        }
    }

    private static HistoryOperation Read(HistoryObject line, int number)
    {
        string op = line.Require("op", line.Text("op"));
        OperationKind kind = HistoryFields.KindOf(op) ?? throw line.Unknown("op", op, HistoryFields.Kinds);
        string ending = line.Require("outcome", line.Text("outcome"));
        HistoryOutcome outcome = HistoryFields.OutcomeOf(ending)
            ?? throw line.Unknown("outcome", ending, HistoryFields.Outcomes);
        HistoryOperation operation = new()
        {
            Process = line.Require("process", line.Integer("process")),
            Key = line.Require("key", line.Text("key")),
            Kind = kind,
            Arguments = ReadArguments(line.Object("args"), kind),
            CallNs = line.Require("call", line.Integer("call")),
            ReturnNs = line.Integer("return"),
            Outcome = outcome,
            Result = ReadResult(line.Object("result"), kind),
            Line = number,
        };
        line.RequireNothingElse();
        return operation;
    }

    private static OperationArguments ReadArguments(HistoryObject args, OperationKind kind)
    {
        OperationArguments arguments = kind switch
        {
            OperationKind.Get or OperationKind.Exists => OperationArguments.None,
            OperationKind.Set when !args.Has("value") => throw args.Missing("value"),
            OperationKind.Set => ReadConditions(args) with
            {
                Value = args.Text("value"),
                OnlyIfAbsent = args.Flag("nx") ?? false,
                TtlMs = args.Integer("ttlMs"),
            },
            OperationKind.Extend => ReadConditions(args) with { TtlMs = args.Require("ttlMs", args.Integer("ttlMs")) },
            OperationKind.Increment => ReadConditions(args) with { By = args.Require("by", args.Integer("by")) },
            OperationKind.Next => new OperationArguments
            {
                Count = args.Require("count", args.Integer("count")),
                IdempotencyKey = args.Text("idempotencyKey"),
                IsFast = args.Flag("fast") ?? false,
            },
            OperationKind.Acquire => ReadMode(args),
            _ => ReadConditions(args),
        };
        args.RequireNothingElse();
        return arguments;
    }

    private static OperationArguments ReadMode(HistoryObject args)
    {
        string word = args.Require("mode", args.Text("mode"));
        LockMode mode = HistoryFields.ModeOf(word) ?? throw args.Unknown("mode", word, HistoryFields.Modes);
        return new OperationArguments
        {
            Mode = mode,
            Permits = mode == LockMode.Permit ? args.Require("permits", args.Integer("permits")) : 0,
        };
    }

    private static LockFence? ReadFence(HistoryObject args)
    {
        HistoryObject fence = args.Object("fence");
        if (fence.IsLeftOut)
        {
            return null;
        }

        LockFence read = new(fence.Require("lock", fence.Text("lock")), fence.Require("token", fence.Integer("token")));
        fence.RequireNothingElse();
        return read;
    }

    private static OperationArguments ReadConditions(HistoryObject args)
    {
        string? compared = args.Text("cmp");
        bool isNull = args.Flag("cmpNull") ?? false;
        return new OperationArguments
        {
            OnlyIfPresent = args.Flag("xx") ?? false,
            OnlyIfValue = isNull || compared is not null,
            ComparedValue = isNull ? null : compared,
            OnlyIfRevision = args.Integer("cmpRev"),
            Fence = ReadFence(args),
        };
    }

    private static OperationResult ReadResult(HistoryObject fields, OperationKind kind)
    {
        bool? affirmed = fields.Flag(HistoryFields.AffirmedOf(kind));
        OperationResult result = kind switch
        {
            OperationKind.Next => new OperationResult
            {
                Affirmed = affirmed,
                First = fields.Integer("first"),
                Last = fields.Integer("last"),
            },
            OperationKind.Acquire => new OperationResult
            {
                Affirmed = affirmed,
                Token = fields.Integer("token"),
                UntilNs = fields.Integer("until"),
            },
            _ => new OperationResult { Affirmed = affirmed, Revision = fields.Integer("revision") },
        };
        if (kind is OperationKind.Get or OperationKind.Exists)
        {
            result = result with { Position = fields.Text("position") };
        }

        if (kind == OperationKind.Get && fields.Has("value"))
        {
            // Without a key there is no value, and a null says no more than that.
            string? value = fields.Text("value");
            bool hasValue = value is not null || affirmed != false;
            result = result with { HasValue = hasValue, Value = value };
        }
        else if (kind == OperationKind.Increment && fields.Integer("value") is { } sum)
        {
            result = result with { HasValue = true, Value = sum.ToString(CultureInfo.InvariantCulture) };
        }

        fields.RequireNothingElse();
        return result;
    }
}
