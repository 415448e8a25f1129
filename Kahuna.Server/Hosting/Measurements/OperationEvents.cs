using System.Text;
using System.Text.Unicode;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>The stages of an operation as events with times, for the slow log and for traces. Pure.</summary>
internal static class OperationEvents
{
    /// <summary>
    /// The events in the order of their times, in microseconds since the operation came in. Stages that it did not
    /// pass are left out.
    /// </summary>
    public static List<(string Name, uint Us)> Of(LongOperation operation)
    {
        uint began = operation.Tag.Stamp;
        OperationStages stages = operation.Stages;
        List<(string Name, uint Us)> events = [];
        foreach ((string name, uint at) in (ReadOnlySpan<(string, uint)>)
            [
                ("proposed", stages.Proposed), ("persisted", stages.Persisted), ("committed", stages.Committed),
                ("confirmed", stages.Confirmed), ("applied", stages.Applied),
            ])
        {
            if (at != 0)
            {
                // What a clock that was read earlier says is not before the arrival.
                events.Add((name, (uint)Math.Max(0, (int)(at - began))));
            }
        }

        // A leader whose disk is slow has an entry committed by others before it has persisted it.
        events.Sort(static (a, b) => a.Us.CompareTo(b.Us));
        events.Insert(0, ("received", 0));
        events.Add(("answered", operation.Answered - began));
        return events;
    }
}

/// <summary>A key as the slow log and traces show it. A value.</summary>
/// <param name="Text">The key, or its bytes in base64.</param>
/// <param name="IsText">Whether it is the key itself.</param>
internal readonly record struct ShownKey(string Text, bool IsText)
{
    /// <summary>Reads the beginning of a key, which may end within a character.</summary>
    public static ShownKey Of(ReadOnlySpan<byte> key)
    {
        for (int cut = 0; cut < 4 && cut <= key.Length; cut++)
        {
            ReadOnlySpan<byte> shown = key[..^cut];
            if (Utf8.IsValid(shown))
            {
                return new ShownKey(Encoding.UTF8.GetString(shown), IsText: true);
            }

            if (key.Length < LongOperation.KeyBytesMax)
            {
                break;
            }
        }

        return new ShownKey(Convert.ToBase64String(key), IsText: false);
    }
}
