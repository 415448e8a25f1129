using System.Globalization;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Coordination;

/// <summary>
/// What a caller needs to find out about a transaction over several partitions: its id, the key in whose partition it
/// is decided, and when it began. A value.
/// </summary>
/// <param name="Id">The id.</param>
/// <param name="Begun">When it began by the client's clock, in Unix seconds.</param>
/// <param name="AnchorKey">The anchor's key.</param>
internal readonly record struct CommitName(TransactionId Id, long Begun, string AnchorKey)
{
    /// <summary>
    /// For so long after its begin the outcome can be found out: a minute less than the cluster remembers it, because
    /// clocks differ.
    /// </summary>
    public const int KnownSeconds = 540;

    private const char Separator = '.';

    /// <summary>Reads the text form. False for any other text.</summary>
    public static bool TryParse(string text, out CommitName name)
    {
        name = default;
        string[] parts = text.Split(Separator, 3);
        if (parts.Length != 3
            || parts[0].Length != 2 * TransactionId.Bytes
            || !UInt128.TryParse(
                parts[0], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out UInt128 id)
            || !long.TryParse(parts[1], NumberStyles.None, CultureInfo.InvariantCulture, out long begun)
            || parts[2].Length == 0)
        {
            return false;
        }

        name = new CommitName(new TransactionId((ulong)(id >> 64), (ulong)id), begun, parts[2]);
        return true;
    }

    /// <summary>The text form.</summary>
    public override string ToString() =>
        string.Create(CultureInfo.InvariantCulture, $"{Id}{Separator}{Begun}{Separator}{AnchorKey}");
}
