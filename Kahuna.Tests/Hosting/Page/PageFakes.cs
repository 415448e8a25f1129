using System.Text.Json.Nodes;
using Kahuna.Server.Hosting.Page;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>Answers for the page that a cluster gives only after an hour, or never. Stateless.</summary>
internal static class PageFakes
{
    /// <summary>Markup that would run if it were not text.</summary>
    public const string Hostile = "<img src=x onerror=alert(1)><svg onload=alert(2)>";

    private static readonly string[] s_groups = ["persistentWrites", "ephemeralWrites", "reads", "locks", "logSyncs"];

    private static readonly string[] s_gauges =
        ["processBytes", "persistentBytes", "ephemeralBytes", "logBytes", "connections"];

    /// <summary>
    /// Node 1 with an hour but for five minutes in which it stood still; node 2 does not answer; node 3 has no metrics.
    /// </summary>
    public static string History() => new JsonObject
    {
        ["self"] = 1,
        ["nodes"] = new JsonArray(
            new JsonObject { ["nodeId"] = 1, ["problem"] = null, ["status"] = HistoryOf(NodeHistory.Samples, 30) },
            new JsonObject { ["nodeId"] = 2, ["problem"] = Hostile },
            new JsonObject { ["nodeId"] = 3, ["status"] = new JsonObject { ["metrics"] = false } }),
    }.ToJsonString();

    /// <summary>An hour of slow operations of two nodes, hostile ones among them.</summary>
    public static string Slow(int count)
    {
        JsonArray operations = [];
        for (int i = 0; i < count; i++)
        {
            bool isText = i % 2 == 0;
            operations.Add(new JsonObject
            {
                ["id"] = i,
                ["at"] = $"2026-11-28T03:{i % 60:d2}:{i / 60 % 60:d2}.000Z",
                ["operation"] = i == 0 ? Hostile : "set",
                ["durability"] = "persistent",
                ["partition"] = 3,
                ["key"] = i == 0 ? Hostile + "\u202e" : isText ? $"orders/{i}" : Convert.ToBase64String([1, 2, 0xff]),
                ["keyIsText"] = isText,
                ["status"] = "ok",
                ["traceId"] = null,
                ["totalUs"] = 123_456 + i,
                ["events"] = new JsonArray(
                    Event("received", 0), Event("proposed", 120), Event("persisted", 90_000),
                    Event(i == 0 ? Hostile : "committed", 91_000), Event("applied", 91_200),
                    Event("answered", 123_456 + i)),
            });
        }

        return new JsonObject
        {
            ["self"] = 1,
            ["nodes"] = new JsonArray(
                new JsonObject
                {
                    ["nodeId"] = 1,
                    ["status"] = new JsonObject
                    {
                        ["node"] = 1,
                        ["thresholdMs"] = 100,
                        ["recorded"] = count,
                        ["operations"] = operations,
                    },
                },
                new JsonObject { ["nodeId"] = 2, ["problem"] = Hostile }),
        }.ToJsonString();
    }

    private static JsonObject Event(string name, long us) => new() { ["name"] = name, ["us"] = us };

    private static JsonObject HistoryOf(int samples, int missing)
    {
        int half = samples / 2;
        int[] kept = [.. Enumerable.Range(0, half), .. Enumerable.Range(half + missing, samples - half - missing)];
        JsonArray Column(Func<int, long> value) => [.. kept.Select(at => (JsonNode)value(at))];
        JsonObject groups = [];
        for (int i = 0; i < s_groups.Length; i++)
        {
            int place = i + 1;
            groups[s_groups[i]] = new JsonObject
            {
                ["count"] = Column(at => (1_000 * place) + (long)(400 * place * Math.Sin((at + (40 * place)) / 25.0))),
                ["p50Us"] = Column(at => (300L * place) + (at % 7 * 10)),
                ["p99Us"] = Column(at => place == 4 && at is > 200 and < 230 ? -1 : (2_000L * place) + (at % 11 * 90)),
            };
        }

        JsonObject gauges = [];
        for (int i = 0; i < s_gauges.Length; i++)
        {
            int place = i + 1;
            gauges[s_gauges[i]] = Column(at => i == 4 ? 40 + (at / 30) : ((600L - (100 * place)) << 20) + (at << 16));
        }

        return new JsonObject
        {
            ["metrics"] = true,
            ["periodMs"] = 10_000,
            ["runningMs"] = 3_400_000,
            ["agesMs"] = Column(at => (samples - 1 - at) * 9_400L),
            ["coversMs"] = Column(static _ => 10_000),
            ["refused"] = Column(static at => at % 20 == 0 ? 50 : 0),
            ["groups"] = groups,
            ["gauges"] = gauges,
        };
    }
}
