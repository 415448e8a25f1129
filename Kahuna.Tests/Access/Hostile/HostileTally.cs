using System.Collections.Concurrent;
using System.Globalization;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>What a run did, and what was wrong with it. Any thread.</summary>
internal sealed class HostileTally
{
    private const int ProblemsMax = 20;

    private readonly ConcurrentDictionary<string, long> _counts = new(StringComparer.Ordinal);
    private readonly ConcurrentQueue<string> _problems = new();
    private long _received;
    private long _revealed;

    /// <summary>What was wrong; at most a few.</summary>
    public IReadOnlyCollection<string> Problems => _problems;

    /// <summary>How often the marker was seen.</summary>
    public long Revealed => Interlocked.Read(ref _revealed);

    /// <summary>Counts something.</summary>
    public void Add(string what) => _counts.AddOrUpdate(what, 1, static (_, count) => count + 1);

    /// <summary>How often something was counted.</summary>
    public long Of(string what) => _counts.GetValueOrDefault(what);

    /// <summary>Counts bytes that the hostile user has received.</summary>
    public void AddReceived(int bytes) => Interlocked.Add(ref _received, bytes);

    /// <summary>It has seen what it may not see.</summary>
    public void Reveal(string where)
    {
        Interlocked.Increment(ref _revealed);
        Wrong($"the marker of the legitimate users was in {where} of the hostile user");
    }

    /// <summary>Something is wrong.</summary>
    public void Wrong(string problem)
    {
        if (_problems.Count < ProblemsMax)
        {
            _problems.Enqueue(problem);
        }
    }

    /// <summary>The counts, on one line.</summary>
    public override string ToString() => string.Join(
        ", ",
        _counts.OrderBy(static count => count.Key, StringComparer.Ordinal)
            .Select(static count => string.Create(CultureInfo.InvariantCulture, $"{count.Value:N0} {count.Key}"))
            .Append(string.Create(
                CultureInfo.InvariantCulture,
                $"{Interlocked.Read(ref _received):N0} bytes received by the hostile user")));
}
