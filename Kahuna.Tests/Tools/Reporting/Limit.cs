namespace Kahuna.Tests.Tools.Reporting;

/// <summary>What a measured value must reach: at least or at most so much. Immutable.</summary>
internal readonly record struct Limit(bool IsLeast, double Value)
{
    public string Direction => IsLeast ? "at least" : "at most";

    public static Limit AtLeast(double value) => new(true, value);

    public static Limit AtMost(double value) => new(false, value);

    public bool IsReached(double value) => IsLeast ? value >= Value : value <= Value;
}
