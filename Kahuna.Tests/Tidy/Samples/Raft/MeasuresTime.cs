using System.Diagnostics;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a stopwatch.</summary>
internal sealed class MeasuresTime
{
    public static long Now() => Stopwatch.GetTimestamp();
}
