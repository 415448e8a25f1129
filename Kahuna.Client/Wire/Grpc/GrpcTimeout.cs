using System.Diagnostics.CodeAnalysis;
using System.Globalization;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>The text form of <c>grpc-timeout</c>: at most eight digits and a unit (H, M, S, m, u, n). Pure; any thread.</summary>
internal static class GrpcTimeout
{
    private const long DigitsMax = 99_999_999;

    /// <summary>Writes a time in the finest unit that holds it, rounded up. Zero and below become the smallest time there is.</summary>
    public static string Encode(TimeSpan timeout)
    {
        long ticks = Math.Max(timeout.Ticks, 0);
        ReadOnlySpan<(long Ticks, char Letter)> units =
        [
            (TimeSpan.TicksPerMicrosecond, 'u'),
            (TimeSpan.TicksPerMillisecond, 'm'),
            (TimeSpan.TicksPerSecond, 'S'),
            (TimeSpan.TicksPerMinute, 'M'),
            (TimeSpan.TicksPerHour, 'H'),
        ];
        if (ticks == 0)
        {
            return "1n";
        }

        foreach ((long unit, char letter) in units)
        {
            long amount = (ticks / unit) + (ticks % unit == 0 ? 0 : 1);
            if (amount <= DigitsMax)
            {
                return string.Create(CultureInfo.InvariantCulture, $"{amount}{letter}");
            }
        }

        return "99999999H";
    }

    /// <summary>Reads the text form. False when it is none. Times past the range of <see cref="TimeSpan"/> become its largest value.</summary>
    public static bool TryDecode([NotNullWhen(true)] string? text, out TimeSpan timeout)
    {
        timeout = default;
        if (text is null || text.Length is < 2 or > 9)
        {
            return false;
        }

        long amount = 0;
        foreach (char c in text.AsSpan(0, text.Length - 1))
        {
            if (!char.IsAsciiDigit(c))
            {
                return false;
            }

            amount = (amount * 10) + (c - '0');
        }

        long? ticks = text[^1] switch
        {
            'H' => Multiply(amount, TimeSpan.TicksPerHour),
            'M' => Multiply(amount, TimeSpan.TicksPerMinute),
            'S' => Multiply(amount, TimeSpan.TicksPerSecond),
            'm' => Multiply(amount, TimeSpan.TicksPerMillisecond),
            'u' => Multiply(amount, TimeSpan.TicksPerMicrosecond),
            'n' => (amount + TimeSpan.NanosecondsPerTick - 1) / TimeSpan.NanosecondsPerTick,
            _ => null,
        };
        timeout = new TimeSpan(ticks ?? 0);
        return ticks is not null;
    }

    private static long Multiply(long amount, long unit) => amount > long.MaxValue / unit ? long.MaxValue : amount * unit;
}
