using Kahuna.Tests.Tools.Load;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>The rows of all rounds, by what was measured. Owned by one report; not thread-safe.</summary>
internal sealed class ComparedPoints : Dictionary<PointKey, List<LoadRow>>
{
    public void Add(PointKey key, LoadRow row)
    {
        if (!TryGetValue(key, out List<LoadRow>? rows))
        {
            this[key] = rows = [];
        }

        rows.Add(row);
    }
}
