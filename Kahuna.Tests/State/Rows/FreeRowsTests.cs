using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State.Rows;

public sealed class FreeRowsTests
{
    [Theory]
    [InlineData(70)]
    [InlineData(5_000)]
    [InlineData(3_000_000)]
    public void The_lowest_is_always_first(int rows)
    {
        Random random = new(rows);
        FreeRows free = new();
        SortedSet<int> model = [];
        for (int i = 0; i < 20_000; i++)
        {
            int row = random.Next(1, rows);
            if (random.Next(3) == 0 && model.Count > 0)
            {
                row = model.Min;
                model.Remove(row);
                free.Remove(new Row(row));
            }
            else if (model.Add(row))
            {
                free.Add(new Row(row));
            }

            Assert.Equal((model.Count, model.Count == 0 ? 0 : model.Min), (free.Count, free.First.Value));
        }
    }
}
