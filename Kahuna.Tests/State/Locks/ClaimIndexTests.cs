using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State.Locks;

/// <summary>The index against a dictionary.</summary>
public sealed class ClaimIndexTests
{
    [Fact]
    public void Claims_are_found_while_others_come_and_go()
    {
        Random random = new(1);
        ClaimIndex index = new(new HashSecret(1, 2));
        Dictionary<long, int> model = [];
        List<long> tokens = [];
        Assert.Equal(0, index.Find(new FencingToken(1)).Value);
        for (int step = 1; step <= 50_000; step++)
        {
            if (random.Next(5) < 3 || tokens.Count == 0)
            {
                index.Add(new FencingToken(step), new Row(step + 7));
                model.Add(step, step + 7);
                tokens.Add(step);
            }
            else
            {
                int at = random.Next(tokens.Count);
                index.Remove(new FencingToken(tokens[at]));
                model.Remove(tokens[at]);
                tokens[at] = tokens[^1];
                tokens.RemoveAt(tokens.Count - 1);
            }

            long any = random.Next(1, step + 2);
            Assert.Equal(model.GetValueOrDefault(any), index.Find(new FencingToken(any)).Value);
            Assert.Equal(model.Count, index.Count);
        }

        Assert.All(model, entry => Assert.Equal(entry.Value, index.Find(new FencingToken(entry.Key)).Value));
    }
}
