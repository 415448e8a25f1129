using Kahuna.Server.Partitions.Requests;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>The lists of held reads against plain ones.</summary>
public sealed class LongPollsTests
{
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    public void Reads_are_taken_once_for_a_change_and_not_after_they_ended(int seed)
    {
        Random random = new(seed);
        LongPolls held = new();
        ModelSink sink = new();
        List<LongPoll> waiting = [];
        List<LongPoll> changed = [];
        for (int step = 0; step < 50_000; step++)
        {
            switch (random.Next(8))
            {
                case < 3:
                    LongPoll added = new(sink, (uint)step, random.Next(5), []);
                    held.Add(added);
                    waiting.Add(added);
                    break;
                case 3:
                    long key = random.Next(5);
                    held.Change(key);
                    changed.AddRange(waiting.Where(read => read.Key == key));
                    waiting.RemoveAll(read => read.Key == key);
                    break;
                case < 6:
                    Take(held, changed);
                    break;
                default:
                    List<LongPoll> of = random.Next(3) == 0 ? changed : waiting;
                    if (of.Count > 0)
                    {
                        LongPoll ended = of[random.Next(of.Count)];
                        ended.HasEnded = true;
                        held.Remove(ended);
                        of.Remove(ended);
                    }

                    break;
            }

            long any = random.Next(5);
            Assert.Equal(waiting.LastOrDefault(read => read.Key == any), held.First(any));
        }

        for (long key = 0; key < 5; key++)
        {
            held.Change(key);
        }

        changed.AddRange(waiting);
        while (held.HasChanged)
        {
            Take(held, changed);
        }

        Assert.Empty(changed);
    }

    private static void Take(LongPolls held, List<LongPoll> changed)
    {
        if (held.TryTakeChanged(out LongPoll read) && !read.HasEnded)
        {
            Assert.True(changed.Remove(read));
        }
    }
}
