namespace Kahuna.Tests.Tools.Reporting;

/// <summary>The arithmetic of reports. Pure.</summary>
internal static class Statistics
{
    /// <summary>The middle one; of an even number, the mean of the two in the middle.</summary>
    public static double Median(this IEnumerable<double> values)
    {
        double[] sorted = [.. values.Order()];
        int middle = sorted.Length / 2;
        return sorted.Length == 0 ? throw new InvalidOperationException("Nothing has no median.")
            : sorted.Length % 2 == 1 ? sorted[middle]
            : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /// <summary>Null when something is missing, or there is nothing to divide by.</summary>
    public static double? Ratio(double? value, double? divisor) => divisor is null or 0 ? null : value / divisor;

    /// <summary>
    /// The median of the ratios of each round: its two values follow one another, and machines change their speed from
    /// one minute to the next. Null without any.
    /// </summary>
    public static double? MedianRatio(IEnumerable<double> values, IEnumerable<double> divisors)
    {
        double[] ratios = [.. values.Zip(divisors, static (value, divisor) => Ratio(value, divisor)).OfType<double>()];
        return ratios.Length == 0 ? null : ratios.Median();
    }
}
