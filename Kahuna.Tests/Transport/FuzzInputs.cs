using System.Globalization;

namespace Kahuna.Tests.Transport;

/// <summary>
/// Hostile byte strings, drawn from a seed: damaged copies of good ones, wrong lengths, cuts, and noise. Owned by one
/// test.
/// </summary>
internal sealed class FuzzInputs(int seed, IReadOnlyList<byte[]> good)
{
    private const string CountVariable = "KAHUNA_TEST_FUZZ_INPUTS";
    private const int NoiseBytesMax = 700;

    private readonly Random _random = new(seed);
    private byte[] _bytes = new byte[8192];

    /// <summary>Number of inputs of a test: from the environment, else <paramref name="usual"/>.</summary>
    public static int Count(int usual) =>
        int.TryParse(
            Environment.GetEnvironmentVariable(CountVariable),
            NumberStyles.None,
            CultureInfo.InvariantCulture,
            out int count)
            ? count
            : usual;

    /// <summary>The next input; valid until the next call.</summary>
    public ReadOnlySpan<byte> Next()
    {
        byte[] model = good[_random.Next(good.Count)];
        if (_bytes.Length < model.Length + NoiseBytesMax)
        {
            _bytes = new byte[model.Length + NoiseBytesMax];
        }

        Span<byte> bytes = _bytes.AsSpan(0, model.Length + _random.Next(NoiseBytesMax));
        _random.NextBytes(bytes[model.Length..]);
        model.CopyTo(bytes);
        switch (_random.Next(8))
        {
            case 0:
                // Noise behind the part that decides which parser reads it.
                _random.NextBytes(bytes[_random.Next(Math.Min(12, model.Length))..]);
                break;
            case 1:
                // Zeroes, which make every length nothing.
                bytes[_random.Next(Math.Min(12, model.Length))..].Clear();
                break;
            default:
                Damage(bytes, model.Length);
                break;
        }

        return _random.Next(3) == 0 ? bytes[.._random.Next(bytes.Length + 1)] : bytes;
    }

    private void Damage(Span<byte> bytes, int modelBytes)
    {
        for (int changes = _random.Next(6); changes > 0; changes--)
        {
            // Half of the changes hit the headers, where the lengths are.
            int at = _random.Next(2) == 0 ? _random.Next(Math.Min(64, modelBytes)) : _random.Next(modelBytes);
            bytes[at] = _random.Next(4) switch
            {
                0 => 0,
                1 => 255,
                2 => (byte)(bytes[at] + 1),
                _ => (byte)_random.Next(256),
            };
        }
    }
}
