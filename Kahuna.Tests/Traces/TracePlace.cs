namespace Kahuna.Tests.Traces;

/// <summary>A line of a trace.</summary>
/// <param name="File">Its file.</param>
/// <param name="Line">From 1 on.</param>
internal readonly record struct TracePlace(string File, long Line)
{
    public override string ToString() => $"{File}:{Line}";
}
