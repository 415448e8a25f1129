using System.Diagnostics;
using System.Globalization;

namespace Kahuna.Tests;

/// <summary>
/// How often a test does again what chance decides: kills, seeds, inputs that are drawn. As often as it asks for while
/// its share of time lasts; on a slow machine no further round begins once that is over, but for the least that is
/// always done. What each round checks does not depend on it. Owned by one test.
/// </summary>
internal sealed class Repeats
{
    private readonly int _least;
    private readonly TimeSpan _share;
    private readonly long _begun = Stopwatch.GetTimestamp();

    /// <param name="most">Rounds with time enough.</param>
    /// <param name="least">Rounds in any case.</param>
    /// <param name="share">Seconds after which no further round begins.</param>
    /// <param name="variable">An environment variable: a whole number in it is the number of rounds, however long they
    /// take.</param>
    public Repeats(int most, int least, double share, string? variable = null)
    {
        bool isAsked = int.TryParse(
            variable is null ? null : Environment.GetEnvironmentVariable(variable),
            NumberStyles.None,
            CultureInfo.InvariantCulture,
            out int asked);
        Most = isAsked ? asked : most;
        _least = isAsked ? asked : Math.Min(least, most);
        _share = TimeSpan.FromSeconds(share);
    }

    /// <summary>Rounds asked for.</summary>
    public int Most { get; }

    /// <summary>Rounds begun.</summary>
    public int Done { get; private set; }

    /// <summary>
    /// Begins a further round; false when there is none. The round's number is <see cref="Done"/> - 1.
    /// </summary>
    public bool Next()
    {
        if (Done >= Most || (Done >= _least && Stopwatch.GetElapsedTime(_begun) > _share))
        {
            return false;
        }

        Done++;
        return true;
    }

    /// <summary>Done, and of how many if some were left out.</summary>
    public override string ToString() => Done == Most ? $"{Done}" : $"{Done} (of {Most}, on this machine)";
}
