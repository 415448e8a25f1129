using System.Globalization;
using System.Text;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// Doubles as text, as ECMA-262 (Number::toString) and RFC 8785 define it: the shortest digits that read back as the
/// same double, with an exponent from 1e21 and below 1e-6, and no sign of zero. .NET gives only the digits, because
/// where it begins to use exponents differs between its versions. Stateless, any thread.
/// </summary>
internal static class DoubleText
{
    /// <summary>From this many digits before the point on, an exponent is written.</summary>
    private const int WholeDigitsMax = 21;

    /// <summary>Up to this many zeros behind the point, no exponent is written.</summary>
    private const int LeadingZerosMax = 5;

    /// <summary>The text of a finite double.</summary>
    public static string Of(double value)
    {
        if (value == 0)
        {
            return "0";
        }

        (string digits, int point) = DigitsOf(Math.Abs(value));
        StringBuilder text = new(value < 0 ? "-" : "");
        if (point > WholeDigitsMax || point <= -LeadingZerosMax - 1)
        {
            int exponent = point - 1;
            text.Append(digits[0]).Append(digits.Length > 1 ? "." : "").Append(digits, 1, digits.Length - 1);
            text.Append(exponent < 0 ? "e-" : "e+").Append(
                Math.Abs(exponent).ToString(CultureInfo.InvariantCulture));
        }
        else if (point <= 0)
        {
            text.Append("0.").Append('0', -point).Append(digits);
        }
        else if (point >= digits.Length)
        {
            text.Append(digits).Append('0', point - digits.Length);
        }
        else
        {
            text.Append(digits, 0, point).Append('.').Append(digits, point, digits.Length - point);
        }

        return text.ToString();
    }

    /// <summary>
    /// The digits of a positive double without zeros at either end, and how many of them are before the point.
    /// </summary>
    private static (string Digits, int Point) DigitsOf(double value)
    {
        ReadOnlySpan<char> text = value.ToString("R", CultureInfo.InvariantCulture);
        int exponentAt = text.IndexOf('E');
        int exponent = exponentAt < 0 ? 0 : int.Parse(
            text[(exponentAt + 1)..], NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture);
        ReadOnlySpan<char> mantissa = exponentAt < 0 ? text : text[..exponentAt];
        int pointAt = mantissa.IndexOf('.');
        string digits = pointAt < 0
            ? mantissa.ToString()
            : string.Concat(mantissa[..pointAt], mantissa[(pointAt + 1)..]);
        int point = (pointAt < 0 ? mantissa.Length : pointAt) + exponent;
        string withoutLeading = digits.TrimStart('0');
        return (withoutLeading.TrimEnd('0'), point - (digits.Length - withoutLeading.Length));
    }
}
