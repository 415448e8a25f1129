using System.Globalization;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>What the watches of one stream are told of made-up changes, without a node.</summary>
public sealed class WatchReaderTests
{
    private static readonly string[] s_keys =
        ["a", "a/b", "a/b/c", "a/b/d", "ab", "b", "b/", "b/é", "b/éa", "__a", "/", "//", "abc/d"];

    [Theory]
    [InlineData(1, false)]
    [InlineData(2, false)]
    [InlineData(3, false)]
    [InlineData(4, false)]
    [InlineData(1, true)]
    [InlineData(2, true)]
    [InlineData(3, true)]
    [InlineData(4, true)]
    [InlineData(5, true)]
    public void Every_watch_hears_of_all_changes_of_its_keys_once_and_in_order(int seed, bool isDispatched)
    {
        Random random = new(seed);
        LoggedChanges changes = new();
        List<IThreadPoolWorkItem> queued = [];
        WatchDispatcher dispatcher = new(changes.Logs, queued.Add);
        WatchNews? news = isDispatched ? new WatchNews(dispatcher, static () => { }) : null;
        using WatchReader reader = new(changes.Logs, dispatch: news);
        CheckedWatches watches = new(changes, reader);
        if (news is not null)
        {
            dispatcher.Join(news);
        }

        List<ChangePoint> seen = [];
        uint id = 0;
        for (int step = 0; step < 4_000; step++)
        {
            bool isEphemeral = random.Next(2) == 0;
            ChangeLog log = changes.Log(random.Next(2), isEphemeral);
            switch (random.Next(100))
            {
                case < 50:
                    changes.Apply(log, [.. Draw(random)]);
                    seen.Add(log.Status.Applied);
                    break;
                case < 55:
                    watches.Begin(
                        ++id,
                        (WatchScope)random.Next(1, 4),
                        DrawName(random),
                        isEphemeral,
                        random.Next(2) == 0,
                        [.. DrawPoints(random, seen, changes, isEphemeral)]);
                    break;
                case < 59 when watches.Ids.Any():
                    watches.End(watches.Ids.ElementAt(random.Next(watches.Ids.Count())));
                    break;
                case < 60 when random.Next(3) == 0:
                    changes.Skip(log, (ulong)random.Next(20));
                    break;
                case < 61 when isEphemeral && random.Next(3) == 0:
                    changes.BeginEpoch(log);
                    break;
                case < 63:
                    reader.RequestProgress();
                    break;
                case < 75:
                    IThreadPoolWorkItem[] due = [.. queued];
                    queued.Clear();
                    Array.ForEach(due, static item => item.Execute());
                    break;
                case < 78:
                    watches.Drain();
                    break;
                default:
                    watches.Fill();
                    break;
            }
        }

        while (queued.Count > 0)
        {
            IThreadPoolWorkItem[] due = [.. queued];
            queued.Clear();
            Array.ForEach(due, static item => item.Execute());
        }

        watches.CheckEnd();
        foreach (WatchNoticeCode code in Enum.GetValues<WatchNoticeCode>().Except(
            [WatchNoticeCode.Refused, WatchNoticeCode.Lagging, WatchNoticeCode.PermissionDenied]))
        {
            Assert.Contains(watches.Told, said => said.Notice == code);
        }
    }

    private static IEnumerable<(string Key, string? Value, int Transaction)> Draw(Random random)
    {
        int count = random.Next(6);
        int transaction = 0;
        for (int n = 0; n < count; n++)
        {
            transaction = random.Next(3) switch
            {
                0 => 0,
                1 => n + 1,
                _ => transaction,
            };
            int bytes = random.Next(100) switch
            {
                0 => 300_000,
                < 5 => 40_000,
                _ => random.Next(2_000),
            };
            string value = random.Next().ToString(CultureInfo.InvariantCulture).PadLeft(bytes);
            yield return (s_keys[random.Next(s_keys.Length)], random.Next(4) == 0 ? null : value, transaction);
        }
    }

    private static string DrawName(Random random)
    {
        string key = s_keys[random.Next(s_keys.Length)];
        string name = random.Next(2) == 0 ? key : key[..random.Next(1, key.Length + 1)];
        return name == "_" || name == "__" ? "a" : name;
    }

    /// <summary>No points (the watch begins now), earlier points, or points slightly ahead.</summary>
    private static IEnumerable<ChangePoint> DrawPoints(
        Random random, List<ChangePoint> seen, LoggedChanges changes, bool isEphemeral)
    {
        for (int partition = 0; partition < 2; partition++)
        {
            ChangePoint now = changes.Log(partition, isEphemeral).Status.Applied;
            List<ChangePoint> past = seen.FindAll(point => point.Group == now.Group);
            switch (random.Next(5))
            {
                case 0 when past.Count > 0:
                    yield return past[random.Next(past.Count)];
                    break;
                case 1 when past.Count > 0:
                    yield return past[random.Next(Math.Max(0, past.Count - 20), past.Count)];
                    break;
                case 2:
                    yield return now with { Index = now.Index + (ulong)random.Next(8) };
                    break;
                case 3:
                    yield return now;
                    break;
                case 4 when changes.All.FindLast(
                    change => change.Point.Group == now.Group && change.Transaction == 0) is { } last:
                    // As a watch goes on that has had a change and not the rest of its entry.
                    yield return last.Point;
                    break;
            }
        }
    }
}
